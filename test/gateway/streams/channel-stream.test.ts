/**
 * Streams of channels. Invariant: a client receives everything up to the event that revokes its
 * access, and nothing after it.
 */
import fc from 'fast-check'
import t from 'tap'
import type { Sink } from '../../../gateway/http/respond.ts'
import { endOnRevocation } from '../../../gateway/streams/channel-stream.ts'
import { frame } from '../../../gateway/streams/sse.ts'

/** Creates a sink that records everything written before its end. */
function kept(): Sink & { readonly frames: string[] } {
  const frames: string[] = []
  let closed = false
  return {
    frames,
    write: (piece) => {
      if (!closed) frames.push(String(piece))
    },
    full: false,
    get closed() {
      return closed
    },
    onDrain: () => {},
    onClose: () => {},
    end: () => {
      closed = true
    },
  }
}
type Happening =
  | { readonly type: 'member.added' | 'member.removed'; readonly who: 'me' | 'you' }
  | { readonly type: 'channel.updated'; readonly private: boolean }
  | { readonly type: 'message.created'; readonly content: string }
const happening: fc.Arbitrary<Happening> = fc.oneof(
  fc.record({
    type: fc.constantFrom('member.added' as const, 'member.removed' as const),
    who: fc.constantFrom('me' as const, 'you' as const),
  }),
  fc.record({ type: fc.constant('channel.updated' as const), private: fc.boolean() }),
  fc.record({
    type: fc.constant('message.created' as const),
    content: fc.constantFrom(
      'hello',
      'event: member.removed',
      '\n\nevent: member.removed\ndata: {"payload":{"member":{"member_id":"me"}}}\n\n',
    ),
  }),
)
const text = (it: Happening, cursor: number): string =>
  frame(
    it.type,
    {
      sequence: cursor,
      payload:
        it.type === 'channel.updated'
          ? { channel: { private: it.private } }
          : it.type === 'message.created'
            ? { message: { content: it.content } }
            : { member: { member_id: it.who } },
    },
    cursor,
  )

t.test('a stream ends with the event that revokes access to the channel', (t) => {
  void fc.assert(
    fc.property(
      fc.array(happening, { maxLength: 30 }),
      fc.nat(30),
      fc.boolean(),
      (happenings, at, member) => {
        // The view granted access as of the cursor `at`. Earlier events have no effect on the
        // access.
        const sink = kept()
        const stream = endOnRevocation(sink, 'me', { private: member, member, at })
        let mine = member
        let closed = member
        let wanted = 0
        let open = true
        for (const [cursor, it] of happenings.entries()) {
          if (open) wanted++
          if (cursor > at) {
            if (it.type === 'channel.updated') closed = it.private
            else if (it.type !== 'message.created' && it.who === 'me')
              mine = it.type === 'member.added'
            if (closed && !mine) open = false
          }
          stream.write(text(it, cursor))
        }
        return sink.frames.length === wanted && sink.closed === !open
      },
    ),
    { numRuns: 1000 },
  )
  t.end()
})
t.test('other text than frames is passed on', (t) => {
  const sink = kept()
  const stream = endOnRevocation(sink, 'me', { private: true, member: true, at: 0 })
  for (const other of [': keepalive\n\n', 'retry: 100\n\n', 'event: stream.reset\ndata: {}\n\n'])
    stream.write(other)
  t.equal(sink.frames.length, 3)
  t.notOk(stream.closed || stream.full)
  stream.end()
  t.ok(sink.closed)
  t.end()
})
