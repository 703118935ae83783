// Handlers of XLA's FFI and functions of the untyped ABI, for tests/ffi.

#include <atomic>
#include <condition_variable>
#include <cstring>
#include <memory>
#include <mutex>
#include <numeric>
#include <string>
#include <string_view>
#include <thread>

#include "xla/ffi/api/ffi.h"

namespace ffi = xla::ffi;

// --- Attributes, arguments, results ---------------------------------------------------------------

// y = x * scale + sum(weights) + options["bias"], and the length of the label as a second result.
static ffi::Error Affine(ffi::Buffer<ffi::F32> x, ffi::ResultBuffer<ffi::F32> y,
                         ffi::ResultBufferR0<ffi::S64> length, float scale,
                         ffi::Span<const int64_t> weights, std::string_view label,
                         ffi::Dictionary options, bool negate) {
  ffi::ErrorOr<double> bias = options.get<double>("bias");
  if (!bias) return bias.error();
  int64_t sum = 0;
  for (int64_t w : weights) sum += w;
  for (size_t i = 0; i < x.element_count(); ++i) {
    float value = x.typed_data()[i] * scale + sum + *bias;
    y->typed_data()[i] = negate ? -value : value;
  }
  length->typed_data()[0] = label.size();
  return ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(AffineHandler, Affine,
                              ffi::Ffi::Bind()
                                  .Arg<ffi::Buffer<ffi::F32>>()
                                  .Ret<ffi::Buffer<ffi::F32>>()
                                  .Ret<ffi::BufferR0<ffi::S64>>()
                                  .Attr<float>("scale")
                                  .Attr<ffi::Span<const int64_t>>("weights")
                                  .Attr<std::string_view>("label")
                                  .Attr<ffi::Dictionary>("options")
                                  .Attr<bool>("negate"));

// The first row of a matrix, by where its elements lie: the layout shows.
static ffi::Error InMemory(ffi::AnyBuffer x, ffi::Result<ffi::AnyBuffer> y) {
  std::memcpy(y->untyped_data(), x.untyped_data(), x.size_bytes());
  return ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(InMemoryHandler, InMemory,
                              ffi::Ffi::Bind().Arg<ffi::AnyBuffer>().Ret<ffi::AnyBuffer>());

static ffi::Error Fail(int32_t code, std::string_view message) {
  return ffi::Error(static_cast<ffi::ErrorCode>(code), std::string(message));
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(
    FailHandler,
    [](ffi::RemainingArgs, ffi::RemainingRets, int32_t code, std::string_view message) {
      return Fail(code, message);
    },
    ffi::Ffi::Bind().RemainingArgs().RemainingRets().Attr<int32_t>("code").Attr<std::string_view>(
        "message"));

// --- State ----------------------------------------------------------------------------------------

static std::atomic<int> live_states{0};
extern "C" int LiveStates() { return live_states; }

struct Counter {
  static ffi::TypeId id;
  static ffi::TypeInfo info;
  explicit Counter(int32_t start) : value(start) { ++live_states; }
  ~Counter() { --live_states; }
  std::atomic<int32_t> value;
};
ffi::TypeId Counter::id = {};
ffi::TypeInfo Counter::info = ffi::MakeTypeInfo<Counter>();
extern "C" void* CounterId() { return &Counter::id; }

struct Plan {
  static ffi::TypeId id;
  static ffi::TypeInfo info;
  explicit Plan(int32_t factor) : factor(factor) { ++live_states; }
  ~Plan() { --live_states; }
  int32_t factor;
};
ffi::TypeId Plan::id = {};
ffi::TypeInfo Plan::info = ffi::MakeTypeInfo<Plan>();

// Registers the types with the API that a call is given.
extern "C" XLA_FFI_Error* RegisterTypes(XLA_FFI_CallFrame* frame) {
  if (XLA_FFI_Error* error =
          ffi::Ffi::RegisterTypeId(frame->api, "test_counter", &Counter::id, Counter::info)) {
    return error;
  }
  return ffi::Ffi::RegisterTypeId(frame->api, "test_plan", &Plan::id, Plan::info);
}

static ffi::ErrorOr<std::unique_ptr<Counter>> CountInstantiate(int32_t start) {
  if (start < 0) return ffi::Unexpected(ffi::Error::InvalidArgument("start is negative"));
  return std::make_unique<Counter>(start);
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(CountInstantiateHandler, CountInstantiate,
                              ffi::Ffi::BindInstantiate().Attr<int32_t>("start"));

static ffi::ErrorOr<std::unique_ptr<Plan>> CountPrepare(int32_t start) {
  return std::make_unique<Plan>(10);
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(CountPrepareHandler, CountPrepare,
                              ffi::Ffi::Bind<ffi::ExecutionStage::kPrepare>().Attr<int32_t>(
                                  "start"));

static ffi::Error CountInitialize(Plan* plan, int32_t start) {
  plan->factor *= 10;
  return ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(CountInitializeHandler, CountInitialize,
                              ffi::Ffi::Bind<ffi::ExecutionStage::kInitialize>()
                                  .Ctx<ffi::Prepared<Plan>>()
                                  .Attr<int32_t>("start"));

static ffi::Error Count(Counter* counter, ffi::ResultBufferR0<ffi::S32> out, int32_t start) {
  out->typed_data()[0] = counter->value++;
  return ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(CountHandler, Count,
                              ffi::Ffi::Bind()
                                  .Ctx<ffi::State<Counter>>()
                                  .Ret<ffi::BufferR0<ffi::S32>>()
                                  .Attr<int32_t>("start"));

static ffi::Error PlannedCount(Counter* counter, Plan* plan, ffi::ResultBufferR0<ffi::S32> out,
                               int32_t start) {
  out->typed_data()[0] = plan->factor * counter->value++;
  return ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(PlannedCountHandler, PlannedCount,
                              ffi::Ffi::Bind()
                                  .Ctx<ffi::State<Counter>>()
                                  .Ctx<ffi::Prepared<Plan>>()
                                  .Ret<ffi::BufferR0<ffi::S32>>()
                                  .Attr<int32_t>("start"));

// --- The execution context ------------------------------------------------------------------------

// x through scratch memory, added up by tasks of the thread pool; also the run and the device.
static ffi::Error Context(ffi::ScratchAllocator scratch, ffi::ThreadPool pool, ffi::RunId run,
                          int32_t device, ffi::Buffer<ffi::S32> x,
                          ffi::ResultBufferR0<ffi::S32> sum, ffi::ResultBufferR1<ffi::S64> facts) {
  size_t count = x.element_count();
  std::optional<void*> memory = scratch.Allocate(4 * count, 128);
  if (!memory) return ffi::Error::Internal("no scratch memory");
  int32_t* copy = static_cast<int32_t*>(*memory);
  std::memcpy(copy, x.typed_data(), 4 * count);
  std::mutex mutex;
  std::condition_variable done;
  size_t left = count;
  int32_t total = 0;
  for (size_t i = 0; i < count; ++i) {
    pool.Schedule([&, i] {
      std::lock_guard<std::mutex> lock(mutex);
      total += copy[i];
      if (--left == 0) done.notify_one();
    });
  }
  std::unique_lock<std::mutex> lock(mutex);
  done.wait(lock, [&] { return left == 0; });
  sum->typed_data()[0] = total;
  facts->typed_data()[0] = pool.num_threads();
  facts->typed_data()[1] = run.run_id;
  facts->typed_data()[2] = device;
  facts->typed_data()[3] = reinterpret_cast<uintptr_t>(copy) % 128;
  return ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(ContextHandler, Context,
                              ffi::Ffi::Bind()
                                  .Ctx<ffi::ScratchAllocator>()
                                  .Ctx<ffi::ThreadPool>()
                                  .Ctx<ffi::RunId>()
                                  .Ctx<ffi::DeviceOrdinal>()
                                  .Arg<ffi::Buffer<ffi::S32>>()
                                  .Ret<ffi::BufferR0<ffi::S32>>()
                                  .Ret<ffi::BufferR1<ffi::S64>>());

static ffi::Error Stream(void*, ffi::Result<ffi::AnyBuffer>) { return ffi::Error::Success(); }
XLA_FFI_DEFINE_HANDLER_SYMBOL(StreamHandler, Stream,
                              ffi::Ffi::Bind()
                                  .Ctx<ffi::PlatformStream<void*>>()
                                  .Ret<ffi::AnyBuffer>());

// Doubles on a thread of its own, after it has returned; or fails there.
static ffi::Future Later(ffi::Buffer<ffi::F32> x, ffi::ResultBuffer<ffi::F32> y, bool fail) {
  ffi::Promise promise;
  ffi::Future future(promise);
  std::thread([=, promise = std::move(promise)]() mutable {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    if (fail) {
      promise.SetError(ffi::Error(ffi::ErrorCode::kDataLoss, "failed later"));
      return;
    }
    for (size_t i = 0; i < x.element_count(); ++i) y->typed_data()[i] = 2 * x.typed_data()[i];
    promise.SetAvailable();
  }).detach();
  return future;
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(LaterHandler, Later,
                              ffi::Ffi::Bind()
                                  .Arg<ffi::Buffer<ffi::F32>>()
                                  .Ret<ffi::Buffer<ffi::F32>>()
                                  .Attr<bool>("fail"));

// A handler that registers others, as libraries do with XLA_FFI_REGISTER_HANDLER.
extern "C" XLA_FFI_Error* RegisterInMemory(XLA_FFI_CallFrame* frame) {
  XLA_FFI_Handler_Bundle bundle = {nullptr, nullptr, nullptr, InMemoryHandler};
  return ffi::Ffi::RegisterStaticHandler(frame->api, "registered_by_library", "Host", bundle);
}

// What a later major version of the FFI would answer when asked for its metadata.
extern "C" XLA_FFI_Error* FromTheFuture(XLA_FFI_CallFrame* frame) {
  auto* extension = reinterpret_cast<XLA_FFI_Metadata_Extension*>(frame->extension_start);
  extension->metadata->api_version.major_version = 1;
  return nullptr;
}

// --- The untyped ABI ------------------------------------------------------------------------------

extern "C" void Add(void* out, const void** in) {
  const float* a = static_cast<const float*>(in[0]);
  const float* b = static_cast<const float*>(in[1]);
  for (int i = 0; i < 3; ++i) static_cast<float*>(out)[i] = a[i] + b[i];
}

extern "C" void SumAndProduct(void* out, const void** in) {
  const float* a = static_cast<const float*>(in[0]);
  void** outs = static_cast<void**>(out);
  *static_cast<float*>(outs[0]) = a[0] + a[1] + a[2];
  *static_cast<float*>(outs[1]) = a[0] * a[1] * a[2];
}

static void (*set_failure)(void*, const char*, size_t);
extern "C" void UseSetFailure(void (*function)(void*, const char*, size_t)) {
  set_failure = function;
}

// Fails with its own message if the first element is negative.
extern "C" void RootOrFail(void* out, const void** in, void* status) {
  float x = *static_cast<const float*>(in[0]);
  if (x < 0) {
    std::string message = x < -1 ? "x is far too negative for a root" : "x < 0";
    set_failure(status, message.data(), message.size());
    return;
  }
  *static_cast<float*>(out) = x / 2;
}

// As XLA's own setter would, which is linked into jaxlib.
extern "C" void FailAsXlaDoes(void* out, const void** in, const char* opaque, size_t length,
                              void* status) {
  *static_cast<std::optional<std::string>*>(status) = std::string(opaque, length);
}
