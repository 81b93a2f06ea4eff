/**
 * Stored state that is lost while a shard is owned, or between two owners. Invariant: the loss is
 * detected, and the state is restored from the journal.
 */
import t from 'tap'
import { settleAll, silentLog } from '../../support/memory.ts'
import { command, reply, runId, ToyWorld } from '../support/toy.ts'

const CHECKPOINT = '0/_/0/checkpoint'
const run = (n: number) => ({ project: 'prj_1', kind: 'run' as const, id: runId(n) })

t.test('a loss is detected although the returned record has the same content', async (t) => {
  const world = new ToyWorld()
  const lost: string[] = []
  const shard = await world.owner(0, world.deps(), lost)
  await shard.submit(command(runId(1), 'add', { by: 1 }))
  await world.clock.advance(5000)
  const before = world.snapshots.values.get(CHECKPOINT)
  if (!before) throw new Error('no checkpoint was stored')
  const put = world.snapshots.put.bind(world.snapshots)
  let writes = 0
  // The next checkpoint first rewrites the unchanged record. Then the newest messages of the stream
  // are lost: the rewritten record and the snapshots of runs.
  world.snapshots.put = async (partition, key, data, revision) => {
    const stored = await put(partition, key, data, revision)
    if (`${partition}/${key}` === CHECKPOINT && ++writes === 1) {
      world.snapshots.values.set(CHECKPOINT, before)
      for (const found of world.snapshots.values.keys())
        if (found.includes('run_')) world.snapshots.values.delete(found)
    }
    return stored
  }
  await shard.submit(command(runId(2), 'add', { by: 2 }))
  await world.clock.advance(5000)
  await settleAll()
  t.strictSame(lost, ['stored state was lost'])
  t.strictSame(
    world.snapshots.values.get(CHECKPOINT)?.data,
    before.data,
    'no checkpoint covers the lost snapshots',
  )
})

for (const fails of [false, true])
  t.test(
    `the next owner detects the loss of a replaced snapshot${fails ? ', announced at the second attempt' : ''}`,
    async (t) => {
      const world = new ToyWorld()
      const first = await world.owner()
      const put = world.snapshots.put.bind(world.snapshots)
      const isRun = (key: string) => key.includes(runId(1))
      const marked = (data: Uint8Array) =>
        (JSON.parse(new TextDecoder().decode(data)) as { state?: number }).state ?? 0
      const announces = (data: Uint8Array) => new TextDecoder().decode(data).includes('"replacing"')
      let unanswered = false
      let failed = !fails
      world.snapshots.put = async (partition, key, data, revision) => {
        if (unanswered && !failed && `${partition}/${key}` === CHECKPOINT && announces(data)) {
          failed = true
          throw new Error('the servers do not answer')
        }
        const stored = await put(partition, key, data, revision)
        if (`${partition}/${key}` === CHECKPOINT && marked(data) > 0 && !unanswered) {
          // The checkpoint is stored, but its owner receives no answer and stores the same
          // snapshots again.
          unanswered = true
          throw new Error('the servers do not answer')
        }
        if (unanswered && isRun(key)) {
          // The new snapshot is lost, the old one is deleted, and the owner ends before its next
          // checkpoint.
          world.snapshots.values.delete(`${partition}/${key}`)
          first.drop()
        }
        return stored
      }
      await first.submit(command(runId(1), 'add', { by: 1 }))
      await first.submit(command(runId(1), 'add', { by: 10 }))
      await first.submit(command(runId(2), 'add', { by: 2 }))
      await world.clock.advance(20_000)
      t.ok(unanswered && failed)
      world.snapshots.put = put
      t.notOk([...world.snapshots.values.keys()].some(isRun))

      const begun = world.owner()
      await world.clock.advance(6000)
      const next = await begun
      t.match(reply(await next.ask(run(1), 'get', undefined)), { count: 11 })
      t.match(reply(await next.ask(run(2), 'get', undefined)), { count: 2 })
      next.drop()
    },
  )

t.test('the record lists the snapshots that are being replaced, and none afterwards', async (t) => {
  const world = new ToyWorld()
  const shard = await world.owner()
  await shard.submit(command(runId(1), 'add', { by: 1 }))
  await world.clock.advance(5000)
  const record = (): { replacing?: string[] } =>
    JSON.parse(new TextDecoder().decode(world.snapshots.values.get(CHECKPOINT)?.data)) as object
  t.equal(record().replacing, undefined, 'a first snapshot replaces none')
  const put = world.snapshots.put.bind(world.snapshots)
  let named: string[] | undefined
  world.snapshots.put = (partition, key, data, revision) => {
    if (key.includes('run_')) named = record().replacing
    return put(partition, key, data, revision)
  }
  await shard.submit(command(runId(1), 'add', { by: 1 }))
  await world.clock.advance(5000)
  t.match(named, [new RegExp(runId(1))])
  t.equal(record().replacing, undefined)
  shard.drop()
})

t.test('an owner that was paused reports the checkpoint of the next owner as a loss', async (t) => {
  const world = new ToyWorld()
  const lost: string[] = []
  const errors: object[] = []
  const log = { ...silentLog, error: (fields: object) => void errors.push(fields) }
  const paused = await world.owner(0, { ...world.deps(), log }, lost)
  await paused.submit(command(runId(1), 'add', { by: 1 }))
  const next = await world.owner()
  await next.submit(command(runId(2), 'add', { by: 2 }))
  await next.stop()
  const answer = await paused.submit(command(runId(3), 'add', { by: 3 }))
  t.strictSame(answer, { not_owner: true })
  t.strictSame(lost, ['another owner has stored a checkpoint'])
  t.strictSame(errors, [], 'this is no failure of the loop')
})
