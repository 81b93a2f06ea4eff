/** Workspace files as the chat page reads them, through calls to actions. */
import { randomBytes } from 'node:crypto'
import t from 'tap'
import { type InvokeAction, WorkspaceFiles } from '../../../client/chat/files/workspace-files.ts'
import type { Invoke, InvokeResult } from '../../../protocol/actions/rows.ts'

type Call = readonly [name: string, body: Invoke]
/** Creates a workspace whose actions return `answer(name, body)`, and records the calls. */
function workspaceOf(answer: (name: string, body: Invoke) => Partial<InvokeResult>) {
  const calls: Call[] = []
  const invoke: InvokeAction = async (name, body) => {
    calls.push([name, body])
    return { status: 'completed', ...answer(name, body) }
  }
  return { calls, files: new WorkspaceFiles(invoke, 'env_1') }
}
/** Answers reads of a file in parts of at most `most` bytes. */
const reading =
  (bytes: Buffer, most = Number.POSITIVE_INFINITY) =>
  (_: string, { input = {} }: Invoke): Partial<InvokeResult> => {
    const offset = Number(input['offset'])
    const end = offset + Math.min(Number(input['max_bytes']), most)
    const content = bytes.subarray(offset, end).toString('base64')
    return { output: { content, ...(end < bytes.length && { next_offset: end }) } }
  }

t.test('the list has files only', async (t) => {
  const file = { path: 'a/b.txt', size: 3, modified_at: '2026-01-01T00:00:00.000Z' }
  const entries = [
    { ...file, dir: false },
    { ...file, path: 'a', dir: true },
  ]
  const { calls, files } = workspaceOf(() => ({ output: { entries, truncated: true } }))
  t.match(await files.list(), { files: [{ path: 'a/b.txt', size: 3 }], truncated: true })
  t.equal((await files.list()).files.length, 1)
  t.match(calls[0], [
    'environment.files.list',
    { environment_id: 'env_1', input: { recursive: true } },
  ])
})

t.test('a file is read in parts', async (t) => {
  const bytes = randomBytes(300_000)
  const { calls, files } = workspaceOf(reading(bytes))
  const read = Buffer.from(await (await files.read('a.bin')).arrayBuffer())
  t.ok(read.equals(bytes))
  t.strictSame(
    calls.map(([, { input }]) => input?.['offset']),
    [0, 128_000, 256_000],
  )
})
t.test('a file that is empty is read', async (t) => {
  const { files } = workspaceOf(reading(Buffer.alloc(0)))
  t.equal((await files.read('empty')).size, 0)
})
t.test('a file that grows without an end is not read forever', async (t) => {
  const { files } = workspaceOf((_, { input = {} }) => ({
    output: { content: 'AAAA', next_offset: Number(input['offset']) + 1_000_000 },
  }))
  await t.rejects(files.read('log'), /too large/)
})
t.test('a worker that repeats an offset is not called again', async (t) => {
  const { calls, files } = workspaceOf(() => ({ output: { content: 'AAAA', next_offset: 0 } }))
  await files.read('odd')
  t.equal(calls.length, 1)
})

t.test('a call without an output has a reason', async (t) => {
  const failed = workspaceOf(() => ({ status: 'failed', error: 'no worker came' }))
  await t.rejects(failed.files.list(), { message: 'The workspace answered: no worker came' })
  const late = workspaceOf(() => ({ status: 'active' }))
  await t.rejects(late.files.list(), { message: /did not answer within 60 seconds/ })
})

t.test('only a refusal of the permission means that the user may not read', async (t) => {
  const refused = (status: number, name: string) =>
    workspaceOf((called) => {
      if (called === name) throw Object.assign(new Error('refused'), { status })
      return {}
    }).files
  const { calls, files } = workspaceOf(() => ({}))
  t.equal(await files.allowed(), true)
  t.strictSame(
    calls.map(([name, { dry_run }]) => [name, dry_run]),
    [
      ['environment.files.list', true],
      ['environment.files.read', true],
    ],
    'nothing is executed',
  )
  t.equal(await refused(403, 'environment.files.list').allowed(), false)
  t.equal(await refused(403, 'environment.files.read').allowed(), false)
  const failed = refused(503, 'environment.files.list')
    .allowed()
    .then(() => undefined)
  t.equal(await failed.catch(({ status }: { readonly status: number }) => status), 503)
})
