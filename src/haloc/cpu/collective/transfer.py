"""send and recv in the native program: letters to and from mailboxes of the gang."""

from __future__ import annotations

from collections.abc import Sequence

from haloc.codegen.kernel import PREFIX, Kernel, Phase
from haloc.cpu.arena import Slot
from haloc.cpu.collective.layout import LETTER_BYTES
from haloc.cpu.collective.place import note_failure, participant
from haloc.cpu.collective.share import MEMCPY, MEMSET
from haloc.cpu.custom_call.transfers import host_transfer
from haloc.cpu.sequencer import STRUCTURES, Frame, Leaves, Sequencer
from haloc.cpu.writer import Function
from haloc.errors import STATUS_CODES
from haloc.ir.module import HloInstruction
from haloc.ir.shape import Shape
from haloc.ops.participants import TRANSFER_PAIRS, transfer_pairs
from haloc.ops.table import attr

_DECLARES = (
    MEMCPY,
    MEMSET,
    "declare ptr @haloc_mail_letter(i64)",
    "declare i32 @haloc_mail_post(ptr, i64, i64, i64, ptr)",
    "declare i32 @haloc_mail_ask(ptr, i64, i64, i64, ptr)",
    "declare i32 @haloc_mail_collect(ptr, i64, i64, i64, i32, ptr)",
    "declare void @free(ptr)",
)

_TAKEN = "what its recv began has been received already"


def _transfer(seq: Sequencer, frame: Frame, instruction: HloInstruction) -> Leaves:
    if attr(instruction, "is_host_transfer"):
        return seq.place(frame, instruction, host_transfer(instruction, seq.target))
    return _BETWEEN_PARTICIPANTS[instruction.opcode](seq, frame, instruction)


def _send(seq: Sequencer, frame: Frame, instruction: HloInstruction) -> Leaves:
    """Copies the data into a letter and posts it. The result's data are the operand's memory."""
    pairs = _pairs(seq, instruction)
    targets = None if pairs is None else dict(pairs)
    data = instruction.operands[0].shape.leaves()
    mail = _Mail(seq, instruction, len(data) + 1, _fault(instruction))
    f = mail.f
    size_bytes = sum(leaf.byte_size for leaf in data)
    f.store("i32", 0, f"%b{len(data)}")
    box = mail.box(targets)
    with f.when(f.op(f"icmp sge i64 {box}, 0")):
        letter = f.op(f"call ptr @haloc_mail_letter(i64 {size_bytes})")
        got = f.op(f"icmp ne ptr {letter}, null")
        exhausted = STATUS_CODES.index("RESOURCE_EXHAUSTED")
        mail.set_status(f.op(f"select i1 {got}, i32 0, i32 {exhausted}"))
        with f.when(got):
            for k, place in enumerate(_places(f, letter, data)):
                mail.copy(place, f"%b{k}", data[k].byte_size)
            arguments = f"i64 {box}, i64 {int(targets is None)}, i64 {mail.participant}"
            post = f"call i32 @haloc_mail_post(ptr %run, {arguments}, ptr {letter})"
            mail.set_status(f.op(post))
    sent = frame.values[instruction.operands[0]]
    number = seq.arena.allocate(4)
    result = [*sent, number, _token()]
    seq.hold(result)
    seq.run_kernel(mail.kernel(size_bytes), [*sent, number])
    return result


def _send_done(seq: Sequencer, frame: Frame, instruction: HloInstruction) -> Leaves:
    """A send has done all there is to do."""
    result = [_token()]
    seq.hold(result)
    return result


def _recv(seq: Sequencer, frame: Frame, instruction: HloInstruction) -> Leaves:
    """Claims the next letter, if one is to come."""
    pairs = _pairs(seq, instruction)
    has_source = None if pairs is None else {target: target for _, target in pairs}
    data = instruction.shape.elements[0].leaves()
    mail = _Mail(seq, instruction, len(data) + 3, _fault(instruction))
    f, code = mail.f, f"%b{len(data) + 1}"
    f.store("i32", 0, code)
    for k, leaf in enumerate(data):
        f.do(f"call void @llvm.memset.p0.i64(ptr %b{k + 1}, i8 0, i64 {leaf.byte_size}, i1 false)")
    box = mail.box(has_source)
    with f.when(f.op(f"icmp sge i64 {box}, 0")):
        arguments = f"i64 {box}, i64 {int(has_source is None)}, i64 {mail.participant}"
        mail.set_status(f.op(f"call i32 @haloc_mail_ask(ptr %run, {arguments}, ptr {code})"))
    return seq.place(frame, instruction, mail.kernel(sum(leaf.byte_size for leaf in data)))


def _recv_done(seq: Sequencer, frame: Frame, instruction: HloInstruction) -> Leaves:
    """Waits for the letter that was claimed; without a claim the data are the recv's zeros."""
    data = instruction.shape.elements[0].leaves()
    count = len(data)
    mail = _Mail(seq, instruction, 2 * count + 3, _TAKEN, _sources(seq, instruction))
    f = mail.f
    results = [f"%b{count + 2 + k}" for k in range(count)]
    code = f.load("i32", f"%b{count}")
    boxes = seq.sites.mailboxes(attr(instruction, "channel_id"))
    own = mail.box({k: k for k in range(seq.sites.count)})
    with f.when(f.op(f"icmp eq i32 {code}, 0")):
        for k, leaf in enumerate(data):
            with f.when(f.op(f"icmp ne ptr {results[k]}, %b{k}")):
                mail.copy(results[k], f"%b{k}", leaf.byte_size)
    with f.when(f.op(f"icmp ne i32 {code}, 0")):
        found = f.variable("ptr")
        arguments = f"i64 {own}, i64 {boxes[-1]}, i64 {mail.participant}, i32 {code}"
        collect = f"call i32 @haloc_mail_collect(ptr %run, {arguments}, ptr {found.ref})"
        status = f.op(collect)
        mail.set_status(status)
        with f.when(f.op(f"icmp eq i32 {status}, 0")):
            letter = f.get(found)
            for k, place in enumerate(_places(f, letter, data)):
                mail.copy(results[k], place, data[k].byte_size)
            f.do(f"call void @free(ptr {letter})")
    in_place = (0,) if count == 1 else ()
    kernel = mail.kernel(sum(leaf.byte_size for leaf in data), in_place)
    return seq.place(frame, instruction, kernel)


_BETWEEN_PARTICIPANTS = {
    "send": _send,
    "send-done": _send_done,
    "recv": _recv,
    "recv-done": _recv_done,
}
STRUCTURES.update(dict.fromkeys(_BETWEEN_PARTICIPANTS, _transfer))


class _Mail:
    """The one phase of a kernel that has to do with mailboxes, under construction."""

    def __init__(
        self,
        seq: Sequencer,
        instruction: HloInstruction,
        buffer_count: int,
        fault: str,
        sources: tuple[int, ...] = (),
    ):
        self.sites = seq.sites
        self.channel = attr(instruction, "channel_id")
        self.site = seq.sites.add_mail(instruction, sources, fault)
        parameters = "".join(f"ptr %b{k}, " for k in range(buffer_count))
        self.f = Function(f"{PREFIX}.mail", f"{parameters}ptr %scratch, ptr %run", "i32")
        self.status = self.f.variable("i32", 0)
        self.participant = participant(self.f, seq.sites.num_partitions)
        self._table = ""

    def box(self, of: dict[int, int] | None) -> str:
        """The offset of the mailbox of `of[participant]`, -1 where it has none; None: the one that
        a channel's two ends share."""
        boxes = self.sites.mailboxes(self.channel)
        if of is None:
            return str(boxes[-1])
        count = self.sites.count
        listed = ", ".join(f"i64 {boxes[of[k]] if k in of else -1}" for k in range(count))
        self._table = f"@{PREFIX}.boxes = internal constant [{count} x i64] [{listed}]\n"
        return self.f.load("i64", self.f.element(f"@{PREFIX}.boxes", "i64", self.participant))

    def copy(self, target: str, source: str, size_bytes: int) -> None:
        self.f.do(
            f"call void @llvm.memcpy.p0.p0.i64(ptr {target}, ptr {source}, "
            f"i64 {size_bytes}, i1 false)"
        )

    def set_status(self, status: str) -> None:
        self.f.set(self.status, status)

    def kernel(self, size_bytes: int, in_place: tuple[int, ...] = ()) -> Kernel:
        f = self.f
        status = f.get(self.status)
        note_failure(f, status, self.site)
        phase = Phase(f"{PREFIX}.mail", unit_cost_ns=size_bytes / 5.0, can_fail=True)
        return Kernel(self._table + f.text(f"i32 {status}"), (phase,), _DECLARES, in_place=in_place)


def _places(f: Function, letter: str, data: Sequence[Shape]) -> list[str]:
    """Where each leaf's data are in a letter."""
    places, offset = [], LETTER_BYTES
    for leaf in data:
        places.append(f.element(letter, "i8", offset))
        offset += leaf.byte_size
    return places


def _pairs(seq: Sequencer, instruction: HloInstruction) -> tuple[tuple[int, int], ...] | None:
    return transfer_pairs(instruction, seq.sites.num_replicas, seq.sites.num_partitions)


def _sources(seq: Sequencer, done: HloInstruction) -> tuple[int, ...]:
    """Who sends to each participant, by the pairs of the recv that `done` ends."""
    begun = done.operands[0]
    pairs = _pairs(seq, begun if begun.opcode == "recv" else done)
    if pairs is None:
        return ()
    source_of = {target: source for source, target in pairs}
    return tuple(source_of.get(k, -1) for k in range(seq.sites.count))


def _fault(instruction: HloInstruction) -> str:
    return (
        f"more than one participant shares channel {attr(instruction, 'channel_id')}; the frontend "
        f"attribute {TRANSFER_PAIRS} must say who sends to whom"
    )


def _token() -> Slot:
    return Slot("constant", 0, 0, pinned=True)
