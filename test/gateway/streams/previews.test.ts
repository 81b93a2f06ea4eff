/** The publisher of generation deltas: which deltas are published, and their limits. */
import t from 'tap'
import { spell } from '../../../gateway/sessions/transcript/change.ts'
import { openPreviews } from '../../../gateway/sessions/transcript/previews.ts'
import type { Preview, Previewed } from '../../../protocol/sessions/transcript/previews.ts'

const WIDE = '\u2028'

/** Creates a publisher for one generation, and records everything that it sends. */
async function publisher() {
  const sent: Preview[] = []
  const timers = new Set<() => void>()
  let whole = (): Previewed | undefined => undefined
  const previews = openPreviews({
    ask: async () => ({ turn_id: 'turn_1', message_id: 'sesmsg_1', revision: 1 }) as never,
    now: () => 0,
    later: (_, run) => {
      timers.add(run)
      return () => void timers.delete(run)
    },
    preview: (_, __, pieces) => void sent.push(...pieces),
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
  return {
    say,
    previews,
    whole: () => whole(),
    texts: async () => {
      await new Promise<void>((done) => setImmediate(done))
      for (const run of [...timers]) run()
      return sent.map(({ delta }) => String(delta['text']))
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
      Buffer.byteLength(spell('message.upsert', { content: at.whole()?.content ?? [] })) <
        8 * 1_048_576,
    )
  }
})
