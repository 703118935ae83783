"""pprof's Profile. Field tables: see `table.py`."""

from __future__ import annotations

from haloc.formats.proto.table import define

define(
    """
ValueType
1 type int64
2 unit int64

Label
1 key int64
2 str int64
3 num int64
4 num_unit int64

Sample
1 location_id uint64*
2 value int64*
3 label Label*

Line
1 function_id uint64
2 line int64

Location
1 id uint64
2 mapping_id uint64
3 address uint64
4 line Line*

Function
1 id uint64
2 name int64
3 system_name int64
4 filename int64
5 start_line int64

Profile
1 sample_type ValueType*
2 sample Sample*
4 location Location*
5 function Function*
6 string_table string*
"""
)
