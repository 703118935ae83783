"""The sort kernel: radix sort where the comparator orders by keys, merge sort for any other."""
