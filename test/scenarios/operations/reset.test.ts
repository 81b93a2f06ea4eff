/**
 * After the journal has been purged, streams report the missing entries with a reset, and
 * configuration and runs continue from snapshots.
 */
import { readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { jetstreamManager } from '@nats-io/jetstream'
import t from 'tap'
import { connectNats } from '../../../nodes/nats/server/connect.ts'
import { silentLog } from '../../support/memory.ts'
import { service } from '../../support/service.ts'
import { ended, instant, listOf, waiting } from '../support/given.ts'

const s = await service({ BATON_SHARDS: '2' })
t.teardown(() => s.stop())

/** Purges the whole journal and deletes the views that still contain its entries. */
async function forgetAll(): Promise<void> {
  const connection = (
    await connectNats({ access: s.server.access, name: 'test', log: silentLog, role: 'test' })
  ).connection
  const { purged } = await (await jetstreamManager(connection)).streams.purge('JOURNAL_0')
  await connection.close()
  if (purged === 0) throw new Error('there was no journal')
  for (const name of readdirSync(s.data)
    .filter((name) => name.startsWith('node-'))
    .flatMap((name) =>
      readdirSync(join(s.data, name, 'views')).map((file) => join(name, 'views', file)),
    ))
    if (/\.sqlite/.test(name)) rmSync(join(s.data, name))
}

const { id: old } = await s.ok('run.start', { spec: waiting() })
const first = listOf(await s.ok('run.events', { id: old }))[0]?.['sequence']
await s.restart(forgetAll)

t.test('an expired cursor gets a reset and then the retained events', async (t) => {
  const { id } = await s.ok('run.start', { spec: instant() })
  await ended(s, id)
  const done = (data: Record<string, unknown>) =>
    (data['data'] as { status?: string } | undefined)?.status === 'completed'
  const frames = await s.follow('run.feed', { since: first }, ({ data }) => done(data))
  t.match(frames[0], {
    event: 'stream.reset',
    id: undefined,
    data: { reason: 'cursor_too_old', requested: first },
  })
  t.ok(Number(frames[0]?.data['resumed_from']) > Number(first))
  t.ok(
    frames
      .slice(1)
      .every(
        (frame) =>
          frame.data['run_id'] === id &&
          Number(frame.id) >= Number(frames[0]?.data['resumed_from']),
      ),
  )
  const run = await s.follow('run.events', { id, after_sequence: first }, () => false)
  t.equal(run[0]?.event, 'stream.reset')
  t.equal(run.at(-1)?.event, 'run.completed')
  const since = Number(frames.at(-2)?.id)
  t.notOk(
    (await s.follow('run.feed', { since }, ({ data }) => done(data))).some(
      ({ event }) => event === 'stream.reset',
    ),
    'a retained cursor gets no reset',
  )
  t.notOk(
    (await s.follow('run.feed', { since: 0 }, ({ data }) => done(data))).some(
      ({ event }) => event === 'stream.reset',
    ),
    'a stream from the start gets no reset',
  )
})

t.test('configuration and runs survive the loss of the journal', async (t) => {
  t.match(await s.ok('project.get'), { handle: 'default' })
  t.match(await s.ok('run.signal', { id: old, name: 'go' }), { source_event_id: /^sevt_/ })
  await s.refused('run.signal', { id: old, name: 'go' }, 409, 'conflict')
})
