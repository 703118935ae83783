/* A PJRT client that knows nothing of Python: loads the plugin file given and runs x + x. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "functions.h"

typedef size_t slot;
typedef struct {
  size_t size;
  void* extensions;
  size_t version_size;
  void* version_extensions;
  int32_t major, minor;
  slot (*functions[138])(void*);
} Api;

static Api* api;

/* Every argument struct as a row of eight-byte slots: size, extensions, then its fields. */
static slot call(int function, slot* args, int fields) {
  args[0] = 8 * (2 + fields);
  args[1] = 0;
  return api->functions[function](args);
}

static char* message_of(slot error, int* code) {
  slot args[5] = {0, 0, error};
  call(Error_Message, args, 3);
  char* text = strndup((char*)args[3], args[4]);
  slot numbers[4] = {0, 0, error};
  call(Error_GetCode, numbers, 2);
  *code = (int)(uint32_t)numbers[3];
  slot gone[3] = {0, 0, error};
  call(Error_Destroy, gone, 1);
  return text;
}

static void check(slot error) {
  int code;
  if (!error) return;
  printf("%s\n", message_of(error, &code));
  printf("code %d\n", code);
  exit(2);
}

static slot compile(slot client, char* code, slot* error) {
  slot program[6] = {48, 0, (slot)code, strlen(code), (slot) "mlir", 4};
  slot args[7] = {0, 0, client, (slot)program, 0, 0};
  *error = call(Client_Compile, args, 5);
  return args[6];
}

static slot run(slot executable, slot buffer) {
  slot options[15] = {120};
  slot arguments[1] = {buffer}, *lists[1] = {arguments};
  slot results[1], *outputs[1] = {results}, events[1];
  slot args[10] = {0, 0, executable, (slot)options, (slot)lists, 1, 1, (slot)outputs,
                   (slot)events, 0};
  check(call(LoadedExecutable_Execute, args, 8));
  slot wait[3] = {0, 0, events[0]};
  check(call(Event_Await, wait, 1));
  check(call(Event_Destroy, wait, 1));
  return results[0];
}

static void print(slot buffer) {
  float values[4];
  slot args[7] = {0, 0, buffer, 0, (slot)values, sizeof values, 0};
  check(call(Buffer_ToHostBuffer, args, 5));
  slot wait[3] = {0, 0, args[6]};
  check(call(Event_Await, wait, 1));
  printf("[%g, %g, %g, %g]", values[0], values[1], values[2], values[3]);
}

static slot executable, first_result;

static void* other_thread(void* unused) {
  slot result = run(executable, first_result);
  printf(", \"from another thread\": ");
  print(result);
  slot gone[3] = {0, 0, result};
  check(call(Buffer_Destroy, gone, 1));
  return unused;
}

int main(int count, char** words) {
  void* library = dlopen(words[1], RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    printf("%s\n", dlerror());
    return 1;
  }
  api = ((Api * (*)(void)) dlsym(library, "GetPjrtApi"))();
  slot initialize[2];
  check(call(Plugin_Initialize, initialize, 0));

  slot option[7] = {56, 0, (slot) "num_devices", 11, 1, 2, 1};
  slot create[11] = {0, 0, (slot)option, 1, 0, 0, 0, 0};
  check(call(Client_Create, create, 9));
  slot client = create[8];
  slot name[5] = {0, 0, client};
  check(call(Client_PlatformName, name, 3));
  printf("{\"platform\": \"%.*s\"", (int)name[4], (char*)name[3]);
  slot devices[5] = {0, 0, client};
  check(call(Client_AddressableDevices, devices, 3));
  printf(", \"devices\": %zu", devices[4]);

  slot error;
  executable = compile(client,
                       "module @m {\n  func.func public @main(%x: tensor<4xf32>) -> tensor<4xf32> "
                       "{\n    %y = stablehlo.add %x, %x : tensor<4xf32>\n    return %y : "
                       "tensor<4xf32>\n  }\n}\n",
                       &error);
  check(error);

  float values[4] = {1, 2, 3, 4};
  int64_t dims[1] = {4};
  slot put[15] = {0, 0, client, (slot)values, 11, (slot)dims, 1, 0, 0, 0, *(slot*)devices[3]};
  check(call(Client_BufferFromHostBuffer, put, 13));
  slot done[3] = {0, 0, put[13]};
  check(call(Event_Await, done, 1));
  slot buffer = put[14];

  first_result = run(executable, buffer);
  printf(", \"result\": ");
  print(first_result);
  pthread_t thread;
  pthread_create(&thread, 0, other_thread, 0);
  pthread_join(thread, 0);

  compile(client, "module { func.func @main() { stablehlo.frobnicate } }", &error);
  int code;
  char* text = message_of(error, &code);
  printf(", \"error of a bad program\": \"");
  for (char* c = text; *c; ++c) printf(*c == '"' || *c < ' ' ? "?" : "%c", *c);
  printf("\", \"code\": %d}\n", code);

  slot gone[3] = {0, 0, first_result};
  check(call(Buffer_Destroy, gone, 1));
  gone[2] = buffer;
  check(call(Buffer_Destroy, gone, 1));
  gone[2] = executable;
  check(call(LoadedExecutable_Destroy, gone, 1));
  gone[2] = client;
  check(call(Client_Destroy, gone, 1));
  return 0;
}
