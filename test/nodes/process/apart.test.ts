/**
 * A view in a separate thread gives the same answers as one in this thread. After a crash, it
 * continues from its file.
 */
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { MessageChannel } from 'node:worker_threads'
import t from 'tap'
import { NewerRelease } from '../../../nodes/host/memory/codec.ts'
import { createThreadRpc } from '../../../nodes/roles/thread-rpc.ts'
import { serveViewInThread, type ThreadPorts } from '../../../nodes/roles/view-worker.ts'
import { type Message, View } from '../../../views/view.ts'
import { silentLog } from '../../support/memory.ts'
import { type Answer, each, Journal, moved, started } from '../../views/support/journal.ts'

const folder = mkdtempSync(join(tmpdir(), 'apart-'))
t.teardown(() => rmSync(folder, { recursive: true }))

/** Returns messages as the store delivers them: those of one packet share a buffer. */
function packet(messages: readonly Message[]): { messages: Message[]; shared: Uint8Array } {
  const texts = messages.map(({ data }) => Buffer.from(JSON.stringify(data)))
  const shared = Buffer.concat(texts)
  let end = 0
  return {
    shared,
    messages: messages.map((message, i) => ({
      ...message,
      data: shared.subarray(end, (end += texts[i]?.length ?? 0)),
    })),
  }
}

/** Creates the ports of a view thread, which the test controls. */
function world(name: string, blobs: Readonly<Record<string, string>> = {}) {
  const journal = new Journal()
  const timers: (() => void)[] = []
  const alarms: Error[] = []
  const state = {
    followed: [] as number[],
    stopped: 0,
    shared: new Uint8Array(1) as Uint8Array,
    alarmed: () => {},
  }
  let on: ((batch: readonly Message[]) => Promise<void>) | undefined
  const deliver = async (messages: readonly Message[]): Promise<void> => {
    const sent = packet(messages)
    state.shared = sent.shared
    await on?.(sent.messages)
  }
  const ports: ThreadPorts = {
    follow: (from, handler) => {
      state.followed.push(from)
      on = handler
      const known = journal.messages.filter(({ sequence }) => sequence >= from)
      if (known.length > 0) deliver(known).catch(() => {})
      return () => {
        state.stopped++
      }
    },
    position: async () => ({ first: 1, last: journal.messages.at(-1)?.sequence ?? 0 }),
    end: () => journal.messages.at(-1)?.sequence ?? 0,
    blob: async (of) => (blobs[of] === undefined ? undefined : Buffer.from(blobs[of])),
    later: (_, run) => {
      timers.push(run)
      return () => {}
    },
    lag: () => {},
    alarm: (error) => {
      alarms.push(error)
      state.alarmed()
    },
    log: silentLog,
    warn: (error) => alarms.push(error),
    embed: async () => ({ failed: 'model_unavailable', message: 'none' }),
    distances: () => {},
  }
  const file = join(folder, name, '0.sqlite')
  const begin = () => serveViewInThread({ file, organization: 'org_a', stale: 1000 }, ports)
  return {
    journal,
    timers,
    alarms,
    state,
    deliver,
    file,
    begin,
    alarm: () =>
      new Promise<void>((heard) => {
        state.alarmed = heard
      }),
  }
}
const runs = { name: 'run.list', project: 'prj_a', input: {} }

t.test(
  'a view thread answers like a view in this thread, and does not transfer shared buffers',
  async (t) => {
    const { journal, state, deliver, begin, file } = world('same')
    mkdirSync(join(file, '..'))
    journal.commit(0, started('run_1', 1))
    const view = begin()
    const first = (await view.ask(runs)) as Answer
    t.strictSame(each(first, 'id'), ['run_1'])
    const more = [
      journal.commit(0, started('run_2', 2)),
      journal.commit(0, moved('run_1', 'completed')),
    ]
    const [asked] = await Promise.all([view.ask(runs), deliver(more)])
    const here = View.open(':memory:')
    here.apply(journal.messages)
    t.strictSame(
      asked,
      here.ask('run.list', 'prj_a', {}),
      'the end of the journal was known when it was asked',
    )
    t.ok(state.shared.length > 0, 'the packet is still whole')
    t.equal(await view.position(), 3)
    t.match(await view.ask({ ...runs, name: 'nonsense' }), { refused: 'service_unavailable' })
    await t.rejects(
      view.ask({ ...runs, name: 'run.get', input: { id: {} } }),
      'an error of a question is not taken for a view that is late',
    )
    here.close()
    await view.stop()
    t.equal(state.stopped > 0, true)
    const again = begin()
    t.strictSame(each((await again.ask(runs)) as Answer, 'id'), ['run_2', 'run_1'])
    t.strictSame(state.followed, [1, 3], 'the file contains the applied entries')
    await again.stop()
  },
)

t.test(
  'a dead thread is restarted; queries meanwhile are refused because the view is behind',
  async (t) => {
    const { journal, timers, alarms, begin, file, alarm } = world('dies')
    journal.commit(0, started('run_1', 1))
    const told = alarm()
    const view = begin()
    t.match(
      await view.ask(runs),
      { refused: 'service_unavailable', details: { reason: 'view_behind' } },
      'the folder is missing, so it ends',
    )
    await told
    t.equal(alarms.length, 1)
    t.match(await view.ask(runs), { refused: 'service_unavailable' })
    mkdirSync(join(file, '..'))
    while (timers.length === 0) await new Promise((again) => setImmediate(again))
    timers[0]?.()
    t.strictSame(each((await view.ask(runs)) as Answer, 'id'), ['run_1'])
    await view.stop()
    t.equal(timers.length, 1, 'a stopped thread is not restarted')
  },
)

t.test(
  'values of the object store come from the process, and a journal of a newer release is detected',
  async (t) => {
    const draft = started('run_1', 1)
    const { journal, alarms, begin, file, deliver, alarm } = world('blobs', {
      large: JSON.stringify({ events: draft.events }),
    })
    mkdirSync(join(file, '..'))
    const { data } = journal.commit(0, draft)
    const [entry] = data.entries
    Object.assign(data, { entries: [{ ...entry, events: { blob: 'large', count: 1 } }] })
    const view = begin()
    t.strictSame(each((await view.ask(runs)) as Answer, 'id'), ['run_1'])
    const told = alarm()
    const next = journal.commit(0, started('run_2', 2))
    Object.assign(next.data, { v: 2 })
    await Promise.all([told, deliver([next])])
    t.ok(alarms[0] instanceof NewerRelease)
    await view.stop()
  },
)

t.test(
  'a call is answered once: with a value, with an error, or with the end of the other side',
  async (t) => {
    const { port1, port2 } = new MessageChannel()
    const near = createThreadRpc(port1, {})
    createThreadRpc(port2, {
      double: (n: number) => n * 2,
      fail: () => {
        throw new Error('no luck')
      },
      never: () => new Promise(() => {}),
    })
    t.strictSame(await Promise.all([near.call('double', 2), near.call('double', 3)]), [4, 6])
    await t.rejects(near.call('fail'), { message: /no luck/ })
    const waits = t.rejects(near.call('never'), { name: 'Gone', message: 'over' })
    near.end('over')
    await waits
    await t.rejects(near.call('double', 1), { message: 'over' })
    port1.close()
  },
)
