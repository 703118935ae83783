"""LLVM text: what native functions call when they leave a call to Python."""

HOOKS = """
@hooks = global [8 x ptr] zeroinitializer

define void @set_hook(i64 %number, ptr %function) {
  %at = getelementptr [8 x ptr], ptr @hooks, i64 0, i64 %number
  store ptr %function, ptr %at
  ret void
}

define internal ptr @python(i64 %number, ptr %args) {
  %at = getelementptr [8 x ptr], ptr @hooks, i64 0, i64 %number
  %function = load ptr, ptr %at
  %error = call ptr %function(ptr %args)
  ret ptr %error
}
"""

HOOK_NUMBERS = {
    "LoadedExecutable_Execute": 0,
    "Client_BufferFromHostBuffer": 1,
    "Buffer_ToHostBuffer": 2,
    "Compile": 3,
}
"""Function of the API -> the number of its hook."""
