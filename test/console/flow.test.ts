/** A flow of live frames after the journal has lost its end. */
import t from 'tap'
import { Flow } from '../../console/live/flow.ts'
import type { LiveFrame, LiveTopic } from '../../console/live/live.ts'

/** Returns a flow that has reached the cursor 5000, and the frames that its listener receives. */
function flowOf(topic: LiveTopic) {
  const flow = new Flow('1', { project: 'default', topic, after: 5000 })
  const frames: LiveFrame[] = []
  flow.join({ frame: (frame) => frames.push(frame), status: () => {} }, 5000)
  const connection = {}
  flow.request(connection)
  flow.started(5000)
  const deliver = (event: string, cursor: number, data: Record<string, unknown> = {}) =>
    flow.deliver({ subscription: '1', event, cursor, data }, connection)
  return { flow, frames, deliver }
}

t.test('after a reset, frames with earlier cursors are delivered', async (t) => {
  const { flow, frames, deliver } = flowOf('runs')
  deliver('run_updated', 4000)
  t.same(frames, [])
  deliver('stream.reset', 1999, { reason: 'cursor_too_new', requested: 5000, resumed_from: 2000 })
  deliver('run_updated', 2000)
  deliver('run_updated', 3000)
  t.same(
    frames.map(({ event, cursor }) => [event, cursor]),
    [
      ['stream.reset', 1999],
      ['run_updated', 2000],
      ['run_updated', 3000],
    ],
  )
  t.equal(flow.cursor, 3000)
})

t.test('a frame that names no record restarts the changes', async (t) => {
  const { flow, frames, deliver } = flowOf('changes')
  deliver('changes', 1999, { changes: [{ kind: 'loop' }] })
  deliver('changes', 1999, { changes: [{ kind: '*' }] })
  deliver('changes', 2000, { changes: [{ kind: 'loop' }] })
  t.same(
    frames.map(({ cursor }) => cursor),
    [1999, 2000],
  )
  t.equal(flow.cursor, 2000)
})
