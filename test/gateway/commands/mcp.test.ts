/** MCP tools and messages: the names of tools, and the timeline as progress notifications. */
import { createHash } from 'node:crypto'
import fc from 'fast-check'
import t from 'tap'
import { createProgressReader, progressSpelling } from '../../../gateway/mcp/progress.ts'
import { shownNames } from '../../../gateway/mcp/tools.ts'
import { checkMessage } from '../../../protocol/mcp/messages.ts'

const hash = (text: string): string => createHash('sha256').update(text).digest('hex')
const shown = (...names: string[]): string[] => [...shownNames(names, hash).values()]

t.test(
  'names are safe for every client, and only names that would collide get a suffix',
  async (t) => {
    t.strictSame(shown('workflow.release-notes', 'crm.find', 'plain'), [
      'workflow_release-notes',
      'crm_find',
      'plain',
    ])
    const [dotted = '', hyphened, safe] = shown('a.b', 'a-b', 'a_b')
    t.match(dotted, /^a_b_[0-9a-f]{8}$/)
    t.strictSame([hyphened, safe], ['a-b', 'a_b'], 'a safe name is kept')
    t.match(shown('x'.repeat(128))[0], /^x{55}_[0-9a-f]{8}$/)
  },
)

t.test('names are safe, distinct and independent of order, for any catalog', async () => {
  const part = fc.stringMatching(/^[a-z0-9]{1,40}$/)
  const name = fc
    .array(part, { minLength: 1, maxLength: 4 })
    .chain((parts) => fc.constantFrom('.', '-', '_').map((by) => parts.join(by).slice(0, 128)))
  void fc.assert(
    fc.property(
      fc.uniqueArray(
        fc.oneof(name, fc.constantFrom('a.b', 'a_b', 'a-b', 'a.b.c', 'a_b.c', 'a.b_c')),
        { maxLength: 12 },
      ),
      (names) => {
        const all = shownNames(names, hash)
        const values = [...all.values()]
        if (new Set(values).size !== names.length)
          throw new Error(`two of ${names.join()} are equal: ${values.join()}`)
        if (!values.every((value) => /^[A-Za-z0-9_-]{1,64}$/.test(value)))
          throw new Error(values.join())
        for (const [one, value] of shownNames([...names].reverse(), hash))
          if (all.get(one) !== value) throw new Error(one)
      },
    ),
  )
})

t.test('a reader counts all events, describes some, and forwards the final frame', async (t) => {
  const line = (sequence: number, event_type: string, step_key?: string) =>
    progressSpelling.spell({
      id: '',
      run_id: '',
      sequence,
      event_type,
      created_at: '',
      ...(step_key !== undefined && { step_key }),
    })
  const seen: unknown[] = []
  const read = createProgressReader({
    event: (...given) => seen.push(given),
    farewell: (frame) => seen.push(frame),
    over: () => seen.push('over'),
  })
  read.write(line(1000, 'run.started') + line(1001, 'action.called', 'a'))
  read.write(Buffer.from(line(2000, 'step.completed', 'a')))
  read.write('event: stream.reset\ndata: {"reason":"cursor_too_old"}\n\n')
  read.write('retry: 700\n\n')
  read.end()
  read.end()
  read.write(line(3000, 'step.started', 'b'))
  t.strictSame(seen, [
    [1000, 'run started'],
    [1001, undefined],
    [2000, 'step completed: a'],
    'retry: 700\n\n',
    'over',
  ])
})

t.test('a message is a request, a notification or a response', async (t) => {
  const good = [
    { method: 'ping' },
    { id: 1, method: 'ping' },
    { id: 'a', result: {} },
    { id: 1, error: { code: 1 } },
  ]
  for (const message of good)
    t.strictSame(checkMessage({ jsonrpc: '2.0', ...message }), [], JSON.stringify(message))
  const bad = [
    {},
    { id: 1 },
    { result: {} },
    { id: 1, result: {}, error: {} },
    { id: 1, method: 'ping', result: {} },
    { id: 1, params: {}, result: {} },
  ]
  for (const message of bad)
    t.equal(checkMessage({ jsonrpc: '2.0', ...message }).length, 1, JSON.stringify(message))
})
