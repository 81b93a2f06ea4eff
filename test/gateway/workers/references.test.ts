/** How references in job results are checked: what is reported, and what is not. */
import t from 'tap'
import { checkReferences } from '../../../gateway/workers/jobs/references.ts'
import { refuse } from '../../../protocol/errors.ts'
import { makeId } from '../../../protocol/ids.ts'

const id = (n: number) => makeId('artifact', n, new Uint8Array(10), n)
const [ready, pending, foreign, unreadable, broken] = [1, 2, 3, 4, 5].map(id) as [
  string,
  string,
  string,
  string,
  string,
]
const reference = (artifact: string) => ({
  type: 'artifact',
  id: artifact,
  mime: 'text/plain',
  size: 1,
  sha256: 'ab'.repeat(32),
})
const states: Readonly<Record<string, unknown>> = {
  [`prj_1 ${ready}`]: { state: 'ready' },
  [`prj_1 ${pending}`]: { state: 'pending' },
  [`prj_2 ${foreign}`]: { state: 'ready' },
  [`prj_1 ${unreadable}`]: refuse('service_unavailable'),
}
async function check(result: unknown): Promise<unknown[]> {
  const lines: unknown[] = []
  const log = { warn: (fields: unknown) => void lines.push(fields) }
  const asked = async (to: { project: string; id: string }) => {
    if (to.id === broken) throw new Error('broken')
    return states[`${to.project} ${to.id}`] ?? null
  }
  const world = { log, ask: asked } as unknown as Parameters<typeof checkReferences>[0]
  await checkReferences(world, 'prj_1', 'job_1', result)
  return lines
}

t.test('artifacts that the project does not have are reported in one line', async (t) => {
  const result = [ready, pending, foreign, unreadable, 'art_x'].map(reference)
  t.same(await check({ files: result }), [
    {
      event: 'artifact_reference_unknown',
      project: 'prj_1',
      job_id: 'job_1',
      artifact_ids: [pending, foreign, 'art_x'],
    },
  ])
})
t.test('a result without a wrong reference is not reported', async (t) => {
  t.same(await check({ n: 1 }), [])
  t.same(await check(reference(ready)), [])
  t.same(await check(reference(unreadable)), [])
  t.same(await check(reference(broken)), [])
})
