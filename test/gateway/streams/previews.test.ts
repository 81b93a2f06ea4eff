/** The publisher of generation deltas: which deltas are published, and their limits. */
import t from 'tap'
import { frameText } from '../../../gateway/sessions/transcript/change.ts'
import { openPreviews } from '../../../gateway/sessions/transcript/previews.ts'
import type { Preview, Previewed } from '../../../protocol/sessions/transcript/previews.ts'

const WIDE = '\u2028'

/** Creates a publisher for one generation, and records everything that it sends. */
async function publisher() {
  const messages: (readonly Preview[])[] = []
  const timers = new Map<() => void, number>()
  let time = 1000
  let whole = (): Previewed | undefined => undefined
  const previews = openPreviews({
    ask: async () => ({ turn_id: 'turn_1', message_id: 'sesmsg_1', revision: 1 }) as never,
    now: () => time,
    monotonic: () => time,
    later: (ms, run) => {
      timers.set(run, time + ms)
      return () => void timers.delete(run)
    },
    preview: (_, __, pieces) => void messages.push(pieces),
    onPreviewed: (_, __, answer) => {
      whole = answer
      return () => {}
    },
  })
  const say = (delta: Record<string, unknown>, sequence?: number, attempt = 'a') =>
    previews.publish(
      { project: 'prj_1', session_id: 'ses_1', job_id: 'job_1', attempt },
      delta,
      sequence,
    )
  const looked = () => new Promise<void>((done) => setImmediate(done))
  const runTimers = (until: number) => {
    for (const [run, at] of [...timers])
      if (at <= until) {
        timers.delete(run)
        run()
      }
  }
  const textOf = ({ delta }: Preview) => String(delta['text'])
  return {
    say,
    previews,
    whole: () => whole(),
    looked,
    /** Lets time pass, and runs the timers that expire. */
    pass: (ms: number) => {
      time += ms
      runTimers(time)
    },
    /** The texts of the messages that were sent. */
    messages: () => messages.map((pieces) => pieces.map(textOf).join(' ')),
    texts: async () => {
      await looked()
      runTimers(Number.POSITIVE_INFINITY)
      return messages.flat().map(textOf)
    },
  }
}

t.test('repeated and late deltas are dropped; those without a number are accepted', async (t) => {
  const at = await publisher()
  for (const [text, sequence] of [
    ['a', 0],
    ['a', 0],
    ['c', 2],
    ['b', 1],
    ['-', undefined],
    ['c', 2],
    ['d', 3],
  ] as const)
    at.say({ text }, sequence)
  t.strictSame(await at.texts(), ['a', 'c', '-', 'd'])
  t.match(at.whole()?.content, [{ text: 'ac-d' }])
})
t.test('each attempt is numbered separately, and forgotten when the job ends', async (t) => {
  const at = await publisher()
  at.say({ text: 'a' }, 7)
  at.say({ text: 'b' }, 1, 'b')
  at.previews.end('job_1')
  at.say({ text: 'c' }, 1)
  at.say({ text: 'd' }, 1, 'b')
  t.strictSame(await at.texts(), ['c', 'd'])
})
t.test('the shown text of one generation fits on one line of a stream', async (t) => {
  for (const piece of [
    { text: WIDE.repeat(100_000) },
    { text: '', thinking: WIDE.repeat(100_000) },
    { text: '', other: WIDE.repeat(100_000) },
  ]) {
    const at = await publisher()
    for (let n = 0; n < 30; n++) at.say(piece, n)
    t.equal((await at.texts()).length, 11)
    t.ok(
      Buffer.byteLength(frameText('message.upsert', { content: at.whole()?.content ?? [] })) <
        8 * 1_048_576,
    )
  }
})

t.test('chunks that follow a message within 20 ms are sent together', async (t) => {
  const at = await publisher()
  at.say({ text: 'a' })
  await at.looked()
  t.strictSame(at.messages(), ['a'], 'the first chunk is sent immediately')
  at.say({ text: 'b' })
  at.pass(10)
  at.say({ text: 'c' })
  at.pass(9)
  t.strictSame(at.messages(), ['a'])
  at.pass(1)
  t.strictSame(at.messages(), ['a', 'b c'])
  t.match(at.whole(), { n: 3, content: [{ text: 'abc' }] })
})
t.test('a chunk after a pause is sent after the current turn of the event loop', async (t) => {
  const at = await publisher()
  at.say({ text: 'a' })
  await at.looked()
  at.pass(20)
  at.say({ text: 'b' })
  at.say({ text: 'c' })
  t.strictSame(at.messages(), ['a'])
  at.pass(0)
  t.strictSame(at.messages(), ['a', 'b c'])
  at.say({ text: 'd' })
  at.pass(0)
  t.strictSame(at.messages(), ['a', 'b c'], 'a message was sent before')
})
t.test('the end of a generation sends the collected chunks of this attempt', async (t) => {
  const at = await publisher()
  at.say({ text: 'a' }, 1)
  at.say({ text: 'A' }, 1, 'other')
  await at.looked()
  at.say({ text: 'b' }, 2)
  at.say({ text: 'B' }, 2, 'other')
  at.previews.end('job_1', 'a')
  t.strictSame(at.messages(), ['a', 'A', 'b'])
  at.pass(20)
  t.strictSame(at.messages(), ['a', 'A', 'b', 'B'])
})
