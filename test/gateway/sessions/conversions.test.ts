/** Turns that show Office files whose conversion is in progress, has failed or has succeeded. */
import t from 'tap'
import { conversionsOf } from '../../../gateway/sessions/conversions.ts'
import { withFileBytes } from '../../../gateway/sessions/inline.ts'
import { fakeWorld } from '../../support/fake-world.ts'

type Conversion = { readonly state: 'converting' | 'ready' | 'failed'; readonly error?: string }

/** Creates a session whose file passes through these states. The last state persists. */
function sessionWith(store: Map<string, Buffer>, states: (Conversion | null)[]) {
  let now = 0
  const world = fakeWorld({
    monotonic: () => now,
    later: (ms: number, run: () => void) => {
      now += ms
      queueMicrotask(run)
      return () => {}
    },
    ask: async () => {
      const conversion = states.length > 1 ? states.shift() : states[0]
      if (conversion?.state === 'ready') store.set('file/p/art_1.md', Buffer.from('# Plan'))
      return conversion ? { id: 'art_1', conversion } : null
    },
  })
  const block = {
    type: 'document',
    title: 'plan.docx',
    media_type: 'application/vnd.openxmlformats-officedocument.wordprocessingml.document',
    size_bytes: 9,
    source: { type: 'artifact', artifact_id: 'art_1' },
  }
  return async (session_id: string | undefined, patience: number) => {
    const [shown] = await withFileBytes(
      { get: async (name) => store.get(name) },
      'p',
      [{ role: 'user', content: [block] }],
      {
        most: 1000,
        reads: () => true,
        conversion: conversionsOf(world, 'p', session_id, patience),
      },
    )
    return { block: shown?.content[0], waited: now }
  }
}
const converting = { state: 'converting' } as const
const shownText = { source: { type: 'text', media_type: 'text/markdown', data: '# Plan' } }

t.test('a turn waits for a conversion, and shows the text', async (t) => {
  const show = sessionWith(new Map(), [converting, converting, { state: 'ready' }])
  t.match(await show('ses_1', 30_000), { block: shownText, waited: 400 })
})
t.test('a turn does not ask for a text that is there', async (t) => {
  const show = sessionWith(new Map([['file/p/art_1.md', Buffer.from('# Plan')]]), [converting])
  t.match(await show('ses_1', 30_000), { block: shownText, waited: 0 })
})
t.test('a turn waits for a limited time', async (t) => {
  const { block, waited } = await sessionWith(new Map(), [converting])('ses_1', 1000)
  t.match(block, { type: 'text', text: /"plan.docx".*: its text is still being extracted\]$/ })
  t.equal(waited, 1000)
})
t.test('the model is shown why a conversion failed', async (t) => {
  const failed = { state: 'failed', error: 'The file is damaged.' } as const
  const { block } = await sessionWith(new Map(), [failed])('ses_1', 1000)
  t.match(block, {
    type: 'text',
    text: /its text could not be extracted\. The file is damaged\.\]$/,
  })
})
t.test('without a session, or a file of it, nothing is waited for', async (t) => {
  const note = { type: 'text', text: /its text could not be read\]$/ }
  t.match(await sessionWith(new Map(), [converting])(undefined, 1000), { block: note, waited: 0 })
  t.match(await sessionWith(new Map(), [null])('ses_1', 1000), { block: note, waited: 0 })
})
