"""From LLVM's object files to running code: atoms, linking, images, loading. LLVM is not needed to
load."""
