/**
 * A worker process of a chaos run. It executes simple jobs with the worker library until it is
 * killed or its parent process ends.
 */
import { type Action, Worker } from '../../client/worker.ts'
import { hashOf } from '../../protocol/subjects.ts'

const { CHAOS_URLS = '', CHAOS_KEY = '', CHAOS_SLOTS = '1', CHAOS_NAME = 'worker' } = process.env
const pause = (ms: number): Promise<void> => new Promise((done) => setTimeout(done, ms))

const work: Action = async ({ n }) => {
  await pause(5)
  return { n }
}
/** Fails about half of all attempts, so about half of all jobs need a retry. */
const unsteady: Action = async ({ n }, { job }) => {
  await pause(5)
  if (hashOf(`${job.id}/${job.claim_attempt}`) % 2 === 0) throw new Error('not this time')
  return { n }
}

const worker = new Worker({
  url: CHAOS_URLS.split(','),
  key: CHAOS_KEY,
  concurrency: Number(CHAOS_SLOTS),
  instance: CHAOS_NAME,
  actions: { work, unsteady },
})
// A disconnect means that the parent process has ended. Nothing else would end this process.
process.once('disconnect', () => process.exit(0))
await worker.start()
process.send?.('ready')
const { reason } = await worker.ended
process.exit(reason === 'failed' ? 1 : 0)
