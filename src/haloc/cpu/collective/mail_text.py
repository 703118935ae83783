"""The LLVM text of mailboxes: what send, recv and recv-done call.

A letter is {next, number}, then its data; letters of a mailbox are numbered in the order in which
they are posted, and so are the claims on them. A claim's code is what a recv's u32[] holds:
0 where nobody sends, else 1 + 2 * (the channel has no pairs) + 4 * number, of the number as many
bits as there is room for: the claims of a mailbox that are open at a time are fewer than 2^30.
"""

MAIL_TEXT = """
declare ptr @malloc(i64)
declare void @free(ptr)

; A letter for %bytes of data; null when memory is short.
define ptr @haloc_mail_letter(i64 %bytes) {
  %all = add i64 %bytes, $LETTER_BYTES
  %letter = call ptr @malloc(i64 %all)
  ret ptr %letter
}

; Whether an end of a mailbox is this participant's: it is the first one's to come. The mutex is
; held.
define internal i1 @take_end(ptr %end, i64 %participant) {
entry:
  %me = add i64 %participant, 1
  %owner = load i64, ptr %end
  %is.free = icmp eq i64 %owner, 0
  br i1 %is.free, label %take, label %look
take:
  store i64 %me, ptr %end
  ret i1 true
look:
  %mine = icmp eq i64 %owner, %me
  ret i1 %mine
}

; Put a letter into the mailbox at %offset, which then owns it; the letter is freed when that fails.
; INVALID_ARGUMENT when %is.shared and another participant sends, too.
define i32 @haloc_mail_post(ptr %run, i64 %offset, i64 %is.shared, i64 %participant, ptr %letter) {
entry:
  %gang.p = getelementptr i8, ptr %run, i64 $run.gang
  %gang = load ptr, ptr %gang.p
  %mutex = getelementptr i8, ptr %gang, i64 $MUTEX
  %status.p = getelementptr i8, ptr %gang, i64 $gang.status
  %boxes.p = getelementptr i8, ptr %gang, i64 $gang.boxes
  %box = getelementptr i8, ptr %gang, i64 %offset
  %posted.p = getelementptr i8, ptr %box, i64 $box.posted
  %first.p = getelementptr i8, ptr %box, i64 $box.first
  %last.p = getelementptr i8, ptr %box, i64 $box.last
  %next.p = getelementptr i8, ptr %box, i64 $box.next
  %sender.p = getelementptr i8, ptr %box, i64 $box.sender
  %number.p = getelementptr i8, ptr %letter, i64 8
  %shared = icmp ne i64 %is.shared, 0
  call i32 @pthread_mutex_lock(ptr %mutex)
  %status = load atomic i64, ptr %status.p seq_cst, align 8
  %status32 = trunc i64 %status to i32
  %poisoned = icmp ne i64 %status, 0
  br i1 %poisoned, label %refuse, label %check
check:
  br i1 %shared, label %check.end, label %number
check.end:
  %mine = call i1 @take_end(ptr %sender.p, i64 %participant)
  br i1 %mine, label %number, label %refuse
refuse:
  %fault = phi i32 [ %status32, %entry ], [ 3, %check.end ]
  call i32 @pthread_mutex_unlock(ptr %mutex)
  call void @free(ptr %letter)
  ret i32 %fault
number:
  %posted = load i64, ptr %posted.p
  %posted.more = add i64 %posted, 1
  store i64 %posted.more, ptr %posted.p
  store ptr null, ptr %letter
  store i64 %posted, ptr %number.p
  %is.news = icmp eq i64 %posted, 0
  br i1 %is.news, label %enlist, label %append
enlist:
  %boxes = load ptr, ptr %boxes.p
  store ptr %boxes, ptr %next.p
  store ptr %box, ptr %boxes.p
  br label %append
append:
  %first = load ptr, ptr %first.p
  %empty = icmp eq ptr %first, null
  %last = load ptr, ptr %last.p
  %link = select i1 %empty, ptr %first.p, ptr %last
  store ptr %letter, ptr %link
  store ptr %letter, ptr %last.p
  call i32 @pthread_mutex_unlock(ptr %mutex)
  call void @release(ptr %gang, ptr %box)
  ret i32 0
}

; A claim on the mailbox's next letter. INVALID_ARGUMENT when %is.shared and another participant
; receives, too.
define i32 @haloc_mail_ask(ptr %run, i64 %offset, i64 %is.shared, i64 %participant, ptr %code.p) {
entry:
  %gang.p = getelementptr i8, ptr %run, i64 $run.gang
  %gang = load ptr, ptr %gang.p
  %mutex = getelementptr i8, ptr %gang, i64 $MUTEX
  %box = getelementptr i8, ptr %gang, i64 %offset
  %receiver.p = getelementptr i8, ptr %box, i64 $box.receiver
  %shared = icmp ne i64 %is.shared, 0
  br i1 %shared, label %check, label %number
check:
  call i32 @pthread_mutex_lock(ptr %mutex)
  %mine = call i1 @take_end(ptr %receiver.p, i64 %participant)
  call i32 @pthread_mutex_unlock(ptr %mutex)
  br i1 %mine, label %number, label %refuse
refuse:
  ret i32 3
number:
  ; Only this participant asks this mailbox.
  %asked = load i64, ptr %box
  %asked.more = add i64 %asked, 1
  store i64 %asked.more, ptr %box
  %shifted = shl i64 %asked, 2
  %bit = shl i64 %is.shared, 1
  %kind = or i64 %bit, 1
  %code = or i64 %shifted, %kind
  %code32 = trunc i64 %code to i32
  store i32 %code32, ptr %code.p
  ret i32 0
}

; Wait for the letter of a claim that is not 0, on this participant's mailbox at %own or the shared
; one at %common. The letter is the caller's to free. INVALID_ARGUMENT where it was taken before.
define i32 @haloc_mail_collect(ptr %run, i64 %own, i64 %common, i64 %participant, i32 %code,
                               ptr %letter.p) {
entry:
  %gang.p = getelementptr i8, ptr %run, i64 $run.gang
  %gang = load ptr, ptr %gang.p
  %mutex = getelementptr i8, ptr %gang, i64 $MUTEX
  %bit = and i32 %code, 2
  %shared = icmp ne i32 %bit, 0
  %offset = select i1 %shared, i64 %common, i64 %own
  %box = getelementptr i8, ptr %gang, i64 %offset
  %first.p = getelementptr i8, ptr %box, i64 $box.first
  %last.p = getelementptr i8, ptr %box, i64 $box.last
  ; The claim's number: the latest that ends in these bits.
  %asked = load i64, ptr %box
  %latest = sub i64 %asked, 1
  %number32 = lshr i32 %code, 2
  %low = zext i32 %number32 to i64
  %since = sub i64 %latest, %low
  %age = and i64 %since, 1073741823
  %number = sub i64 %latest, %age
  %waited = call i64 @attend(ptr %gang, ptr %box, i64 %number, i64 %participant)
  %waited32 = trunc i64 %waited to i32
  %failed = icmp ne i64 %waited, 0
  br i1 %failed, label %fail, label %open
fail:
  ret i32 %waited32
open:
  call i32 @pthread_mutex_lock(ptr %mutex)
  br label %look
look:
  %link = phi ptr [ %first.p, %open ], [ %letter, %test ]
  %letter = load ptr, ptr %link
  %gone = icmp eq ptr %letter, null
  br i1 %gone, label %missing, label %test
test:
  %letter.number.p = getelementptr i8, ptr %letter, i64 8
  %letter.number = load i64, ptr %letter.number.p
  %found = icmp eq i64 %letter.number, %number
  br i1 %found, label %take, label %look
missing:
  call i32 @pthread_mutex_unlock(ptr %mutex)
  ret i32 3
take:
  %next = load ptr, ptr %letter
  store ptr %next, ptr %link
  %was.last = icmp eq ptr %next, null
  br i1 %was.last, label %shorten, label %done
shorten:
  ; Of the first letter the link is the mailbox's own, and then `last` is not looked at.
  store ptr %link, ptr %last.p
  br label %done
done:
  call i32 @pthread_mutex_unlock(ptr %mutex)
  store ptr %letter, ptr %letter.p
  ret i32 0
}

; Free what was sent and never received: all calls have ended.
define internal void @discard(ptr %gang) {
entry:
  %boxes.p = getelementptr i8, ptr %gang, i64 $gang.boxes
  %boxes = load ptr, ptr %boxes.p
  br label %boxes.left
boxes.left:
  %box = phi ptr [ %boxes, %entry ], [ %box.next, %emptied ]
  %no.box = icmp eq ptr %box, null
  br i1 %no.box, label %done, label %open
open:
  %first.p = getelementptr i8, ptr %box, i64 $box.first
  %first = load ptr, ptr %first.p
  br label %letters.left
letters.left:
  %letter = phi ptr [ %first, %open ], [ %letter.next, %drop ]
  %no.letter = icmp eq ptr %letter, null
  br i1 %no.letter, label %emptied, label %drop
drop:
  %letter.next = load ptr, ptr %letter
  call void @free(ptr %letter)
  br label %letters.left
emptied:
  %next.p = getelementptr i8, ptr %box, i64 $box.next
  %box.next = load ptr, ptr %next.p
  br label %boxes.left
done:
  ret void
}
"""
