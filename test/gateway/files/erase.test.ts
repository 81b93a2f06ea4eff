/** The deletion of the objects of a file, with stores that do not delete. */
import t from 'tap'
import { eraseFile } from '../../../gateway/files/erase.ts'
import type { Files } from '../../../gateway/ports.ts'

const never = new Promise<never>(() => {})

/** Erases a file of a store whose deletions end as given. The only timer ends at once if `late`. */
async function erase(deleted: (name: string) => Promise<void>, late: boolean) {
  const warned: unknown[] = []
  const cancelled: number[] = []
  const warn = ({ event, err }: { readonly event: string; readonly err?: unknown }) =>
    void warned.push([event, (err as Error).message])
  const nothing = () => {}
  await eraseFile(
    {
      files: { delete: deleted } as Files,
      later: (ms, run) => {
        if (late) run()
        return () => void cancelled.push(ms)
      },
      log: { warn, debug: nothing, info: nothing, error: nothing },
    },
    'artifacts/prj/art/blob',
  )
  return { warned, cancelled }
}

t.test('given a store that answers, all objects are deleted without a warning', async (t) => {
  const names: string[] = []
  const { warned, cancelled } = await erase(async (name) => void names.push(name), false)
  t.equal(names[0], 'artifacts/prj/art/blob')
  t.equal(names.length, 2)
  t.strictSame(warned, [])
  t.equal(cancelled.length, 1, 'no timer remains')
})

t.test('given a store that fails, a warning is logged', async (t) => {
  const { warned } = await erase(() => Promise.reject(new Error('SlowDown')), false)
  t.strictSame(warned, [['file_deletion_delayed', 'SlowDown']])
})

t.test('given a store that never answers, the request does not wait for it', async (t) => {
  const { warned } = await erase(() => never, true)
  t.strictSame(warned, [['file_deletion_delayed', 'the store did not answer within 3 s']])
})
