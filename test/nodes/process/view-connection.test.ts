/**
 * A view's thread with a separate NATS connection. It reads the journal and answers queries of other
 * processes without the main thread, also after the NATS server was killed.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import type { Log } from '../../../gateway/ports.ts'
import { createBus } from '../../../nodes/nats/bus.ts'
import { createJournal } from '../../../nodes/nats/journal/journal.ts'
import { provision } from '../../../nodes/nats/server/provision.ts'
import { serveViewInThread, type ThreadPorts } from '../../../nodes/roles/view-worker.ts'
import { systemClock } from '../../../nodes/system.ts'
import { subjects } from '../../../protocol/subjects.ts'
import { silentLog } from '../../support/memory.ts'
import {
  type Answer,
  type Draft,
  each,
  Journal,
  moved,
  started,
} from '../../views/support/journal.ts'
import { startStore } from '../support/store.ts'

const folder = mkdtempSync(join(tmpdir(), 'view-connection-'))
t.teardown(() => rmSync(folder, { recursive: true }))
const { one, two, access, kill } = await startStore('always')
await provision(one, { partitions: 1, shards: 4, replicas: 1 })

const runs = { name: 'run.list', project: 'prj_a', input: {} }

/** Returns a function that commits entries and appends them to the journal on the server. */
function appender() {
  const entries = new Journal()
  const journal = createJournal(one)
  return async (...drafts: readonly Draft[]): Promise<void> => {
    const { data, message_id, sequence } = entries.commit(0, ...drafts)
    for (;;) {
      const bytes = Buffer.from(JSON.stringify(data))
      const appended = await journal.append(0, 0, bytes, sequence - 1, message_id)
      if (appended !== 'unknown') return void t.strictSame(appended, { sequence })
    }
  }
}
/** Ports whose journal must not be used, because the thread reads it itself. */
function ports(alarms: Error[], logged: string[]): ThreadPorts {
  const unused = (): never => {
    throw new Error('the thread used a port of the main thread')
  }
  const log: Log = {
    ...silentLog,
    warn: ({ event, connection }) => void logged.push(`${event} ${String(connection)}`),
  }
  return {
    follow: unused,
    position: unused,
    end: () => undefined,
    blob: unused,
    later: systemClock.later,
    log,
    lag: () => {},
    alarm: (error) => alarms.push(error),
    warn: (error) => alarms.push(error),
    embed: async () => ({ failed: 'model_unavailable', message: 'none' }),
    distances: () => {},
  }
}

t.test('a thread with a connection reads the journal and answers queries itself', async (t) => {
  const append = appender()
  await append(started('run_1', 1))
  const [alarms, logged]: [Error[], string[]] = [[], []]
  const connection = { node: 'n1', access, name: 'the view', role: 'test', partition: 0 }
  const terms = { file: join(folder, '0.sqlite'), organization: 'org_a', stale: 1000 }
  const view = serveViewInThread({ ...terms, connection }, ports(alarms, logged))
  t.strictSame(each((await view.ask(runs)) as Answer, 'id'), ['run_1'], 'a query of this process')

  const bus = createBus(two)
  const ask = async () => {
    // While the server or the thread's connection is down, no process answers.
    for (let i = 0; i < 100; i++) {
      const asked = await bus.request(subjects.view(0), runs, 5000)
      if (typeof asked === 'object') return each(asked.answer as Answer, 'id')
      await new Promise<void>((again) => systemClock.later(100, again))
    }
    throw new Error('no answer')
  }
  t.strictSame(await ask(), ['run_1'], 'a query of another process')
  await append(started('run_2', 2))
  t.strictSame(await ask(), ['run_2', 'run_1'], 'it covers the journal up to its end')

  const restart = await kill()
  await restart()
  await append(started('run_3', 3), moved('run_1', 'completed'))
  t.strictSame(await ask(), ['run_3', 'run_2', 'run_1'], 'after the server was killed')
  t.strictSame(each((await view.ask(runs)) as Answer, 'id'), ['run_3', 'run_2', 'run_1'])
  t.equal(await view.position(), 3)
  t.ok(logged.includes('nats_disconnected the view'), 'the log of the thread is passed on')
  t.strictSame(alarms, [])

  await view.stop()
  t.equal(await bus.request(subjects.view(0), runs, 5000), 'no_responders')
})

t.test('a thread that cannot connect ends with an alarm, and is started again', async (t) => {
  const alarms: Error[] = []
  let again = () => {}
  const restarted = new Promise<void>((done) => {
    again = done
  })
  const connection = {
    access: { ...access, credentials: { type: 'token', token: 'wrong' } as const },
    name: 'the view',
    node: 'n1',
    role: 'test',
    partition: 0,
  }
  const view = serveViewInThread(
    { file: join(folder, '1.sqlite'), organization: 'org_a', stale: 1000, connection },
    {
      ...ports(alarms, []),
      later: (_, run) => {
        run()
        again()
        return () => {}
      },
    },
  )
  const begun = view.begun()
  t.match(await view.ask(runs), { refused: 'service_unavailable' })
  await t.rejects(begun, { name: 'StartFault', message: /BATON_NATS_TOKEN/ })
  await restarted
  t.match(alarms[0], { message: /BATON_NATS_TOKEN/ })
  await view.stop()
})
