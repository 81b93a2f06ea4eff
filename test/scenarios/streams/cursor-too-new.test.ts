/**
 * Cursors after the end of the journal, which clients have after a restore or a loss of the
 * journal's end: streams report them, and then send every new event.
 */
import t from 'tap'
import { client } from '../../../client/client.ts'
import { type Frame, followChannel, followProject, followRun } from '../../../client/follow.ts'
import { followStreams, type StreamMessage } from '../../../client/streams/follow.ts'
import { service } from '../../support/service.ts'
import { ended, instant, listOf } from '../support/given.ts'

const s = await service()
t.teardown(() => s.stop())
const baton = client({ url: s.url, key: s.key })
const idOf = (record: Readonly<Record<string, unknown>>): string => String(record['id'])
const run = idOf(await s.ok('run.start', { spec: instant() }))
await ended(s, run)
const sequences = listOf(await s.ok('run.events', { id: run })).map(({ sequence }) => sequence)
/** A cursor that the journal does not reach during the test. */
const lost = Number(sequences.at(-1)) + 1_000_000_000

async function taken<T>(frames: AsyncIterable<T>, until: (frame: T) => boolean): Promise<T[]> {
  const all: T[] = []
  for await (const frame of frames) {
    all.push(frame)
    if (until(frame)) break
  }
  return all
}
const isReset = ({ type }: Frame<unknown>): boolean => type === 'stream.reset'

t.test('the timeline of a run is sent again from its start', async (t) => {
  const frames = await taken(followRun(baton, run, { after: lost }), () => false)
  t.match(frames[0], {
    type: 'stream.reset',
    data: { reason: 'cursor_too_new', requested: lost, resumed_from: 1 },
  })
  t.same(
    frames.slice(1).map(({ id }) => id),
    sequences,
  )
})

t.test('the feed of a project and the events of a channel continue with new events', async (t) => {
  const channel = idOf(await s.ok('channel.create', { name: 'lost' }))
  const feed = taken(
    followProject(baton, { after: lost }),
    ({ type, data }) =>
      type === 'run_updated' && (data.data as { status: string }).status === 'completed',
  )
  const messages = taken(followChannel(baton, channel, { after: lost }), (frame) => {
    if (isReset(frame)) void s.ok('channel.send', { id: channel, content: 'hello' })
    return frame.type === 'message.created'
  })
  t.match(
    (await messages).map(({ type }) => type),
    ['stream.reset', 'message.created'],
  )
  const { id: next } = await s.ok('run.start', { spec: instant() })
  const frames = await feed
  t.match(frames[0], { type: 'stream.reset', data: { reason: 'cursor_too_new', requested: lost } })
  t.ok(frames.slice(1).every(({ data }) => data.run_id === next))
})

t.test('a multiplexed stream reports the loss of each subscription', async (t) => {
  const seen = new Set<string>()
  const frames = await taken<StreamMessage>(
    followStreams(baton, [
      { id: 'runs', topic: 'runs', after: lost },
      { id: 'changes', project: 'default', topic: 'changes', after: lost },
    ]),
    ({ subscription, event }) => {
      if (event === 'stream.reset' || event === 'changes') seen.add(subscription)
      return seen.size === 2
    },
  )
  const of = (name: string) => frames.find(({ event }) => event === name)
  t.match(of('stream.reset'), { subscription: 'runs', data: { reason: 'cursor_too_new' } })
  t.ok(Number(of('stream.reset')?.cursor) < lost)
  t.match(of('changes'), { subscription: 'changes', data: { changes: [{ kind: '*' }] } })
  t.ok(Number(of('changes')?.cursor) < lost)
})
