/** The errand that converts a file: what it stores, what it reports, and what it leaves behind. */
import t from 'tap'
import type { CapabilityReader } from '../../../../gateway/queries/agent-capabilities.ts'
import type { Conversion, Converter } from '../../../../nodes/executor/documents/converter.ts'
import { errands } from '../../../../nodes/executor/errands/errands.ts'
import { type Handler, NOT_OURS } from '../../../../nodes/executor/handler.ts'
import { fake } from '../../../support/fake-world.ts'

type Work = Parameters<Handler['perform']>[0]

/**
 * Creates an errand that converts a file with a scripted converter.
 * @param state the state of the artifact after its text was stored; null if the artifact does not
 *   exist.
 */
function executorWith({
  outcome = { markdown: '# Plan' } as Conversion,
  state = 'ready' as string | null,
  down = false,
} = {}) {
  const store = new Map([['blob_1', Buffer.from('bytes')]])
  const converter: Converter = {
    convert: async (read, signal) => {
      signal?.throwIfAborted()
      return (await read()) && outcome
    },
  }
  const fail = () => {
    if (down) throw new Error('down')
  }
  const silent = () => {}
  const asking = fake<CapabilityReader>('reader', {
    directory: {},
    world: {
      log: { debug: silent, info: silent, warn: silent, error: silent },
      ask: async () => state && { state },
      files: {
        get: async (name: string) => {
          fail()
          return store.get(name)
        },
        put: async (name: string, bytes: Buffer) => {
          fail()
          store.set(name, Buffer.from(bytes))
        },
        delete: async (name: string) => void store.delete(name),
      },
    },
  })
  const run = (signal = new AbortController().signal) =>
    errands(asking, converter).perform({
      project: 'prj_1',
      job: { id: 'job_1', spec: { errand: 'convert', artifact_id: 'art_1', blob: 'blob_1' } },
      signal,
    } as unknown as Work)
  return { store, run }
}

t.test('the text is stored beside the bytes', async (t) => {
  const { store, run } = executorWith()
  t.same(await run(), { status: 'completed', result: { state: 'ready' } })
  t.equal(store.get('blob_1.md')?.toString(), '# Plan')
  t.same(await run(), { status: 'completed', result: { state: 'ready' } }, 'a repeat')
})
t.test('a file that cannot be converted', async (t) => {
  const { store, run } = executorWith({ outcome: { error: 'It is damaged.' } })
  t.same(await run(), {
    status: 'completed',
    result: { state: 'failed', error: 'It is damaged.' },
  })
  t.equal(store.size, 1)
})
t.test('a file that was deleted leaves nothing behind', async (t) => {
  for (const state of ['deleted', null]) {
    const { store, run } = executorWith({ state })
    t.match(await run(), { result: { state: 'failed', error: /deleted/ } })
    t.equal(store.size, 1, 'the text is erased')
  }
  const { store, run } = executorWith()
  store.clear()
  t.match(await run(), { result: { state: 'failed', error: /deleted/ } })
})
t.test('an unavailable store is tried again', async (t) => {
  const { run } = executorWith({ down: true })
  t.match(await run(), {
    status: 'failed',
    error_type: 'artifact_storage_unavailable',
    retry_in: /\d/,
  })
})
t.test('the job returns to its queue when the executor stops', async (t) => {
  const { run } = executorWith()
  t.equal(await run(AbortSignal.abort(new Error('stop'))), NOT_OURS)
})
