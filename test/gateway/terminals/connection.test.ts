/** The client's connection to a terminal: messages, limits, and the start of a worker. */
import t from 'tap'
import { uniqueTexts } from '../../../gateway/http/hex.ts'
import { TerminalConnection } from '../../../gateway/terminals/connection.ts'
import { type Refusal, refuse } from '../../../protocol/errors.ts'
import {
  type TerminalAnswer,
  type TowardsPerson,
  type TowardsWorker,
  terminalLimits,
} from '../../../protocol/workers/terminals.ts'
import { fakeWorld } from '../../support/fake-world.ts'
import { ManualClock, settleAll, silentLog } from '../../support/memory.ts'

interface Script {
  answers: (TerminalAnswer | undefined)[]
  provider: string
  state: string
  verdict: Refusal | undefined
  look: () => Promise<void>
  uses: number
  started: Refusal | undefined
}
function stage(script: Partial<Script> = {}) {
  const clock = new ManualClock()
  const it: Script = {
    answers: [{ ok: true }],
    provider: 'local',
    state: 'connected',
    verdict: undefined,
    look: async () => {},
    uses: 0,
    started: undefined,
    ...script,
  }
  const commands: string[] = []
  const towards: TowardsWorker[] = []
  const sent: Record<string, unknown>[] = []
  let closed: number | undefined
  let gone = 0
  let say: (message: TowardsPerson) => void = () => {}
  const world = fakeWorld({
    now: clock.now,
    monotonic: clock.now,
    later: clock.later,
    random: (bytes: number) => new Uint8Array(bytes),
    newCommandId: uniqueTexts((bytes) => new Uint8Array(bytes)),
    log: silentLog,
    commandRow: async ({ name, input }: { name: string; input: { state?: string } }) => {
      commands.push(input.state === undefined ? name : `${name} ${input.state}`)
      return name === 'environment.start_worker' && it.started ? it.started : { reply: undefined }
    },
    ask: async () => ({
      environment: { provider: it.provider },
      worker: { state: it.state, generation: 1 },
    }),
    terminals: {
      open: async () => (it.answers.length > 1 ? it.answers.shift() : it.answers[0]),
      toWorker: (_id: string, message: TowardsWorker) => void towards.push(message),
      onPerson: (_id: string, on: typeof say) => {
        say = on
        return () => {
          say = () => {}
        }
      },
    },
  })
  const connection = new TerminalConnection(
    world,
    {
      project: 'prj_1',
      environment_id: 'env_1',
      principal: { type: 'user', id: 'user_1' },
      credential: { type: 'cli_token', id: 'tok_1' },
      recheck: async () => it.verdict,
      watch: (look) => {
        it.look = look
        return () => {
          it.look = async () => {}
        }
      },
      used: () => it.uses++,
    },
    {
      send: (text) => void sent.push(JSON.parse(text)),
      close: (code) => {
        closed = code
      },
    },
    () => gone++,
  )
  const send = (message: object) => connection.receive(JSON.stringify(message))
  const advance = async (ms: number) => {
    for (let left = ms; left > 0; left -= 500) {
      await clock.advance(Math.min(left, 500))
      await settleAll()
    }
  }
  return {
    it,
    connection,
    commands,
    towards,
    sent,
    send,
    advance,
    say: (message: TowardsPerson) => say(message),
    closed: () => closed,
    gone: () => gone,
    code: () => (sent.at(-1)?.['error'] as { code: string } | undefined)?.code,
    async open() {
      send({ type: 'terminal.open', columns: 80, rows: 24 })
      await settleAll()
    },
  }
}
const input = (bytes: number) => ({
  type: 'terminal.input',
  data: Buffer.alloc(bytes).toString('base64'),
})

t.test('an open terminal passes messages on, and is in the audit log', async (t) => {
  const it = stage()
  await it.open()
  t.match(it.sent, [{ type: 'terminal.opened' }])
  it.send(input(3))
  it.send(input(3))
  it.say({ type: 'terminal.output', sequence: 0, data: 'eA==' })
  it.say({ type: 'terminal.exit', exit_code: 3 })
  t.match(it.towards, [{ sequence: 0 }, { sequence: 1 }, { type: 'terminal.close' }])
  t.match(it.sent.slice(1), [{ type: 'terminal.output' }, { exit_code: 3 }])
  t.equal(it.closed(), 1000)
  t.equal(it.gone(), 1)
  t.strictSame(it.commands, ['environment.terminal opened', 'environment.terminal closed'])
})

t.test('output that arrives before the answer is shown after it', async (t) => {
  const it = stage()
  it.send({ type: 'terminal.open', columns: 80, rows: 24 })
  it.say({ type: 'terminal.output', sequence: 0, data: 'eA==' })
  await settleAll()
  t.strictSame(
    it.sent.map(({ type }) => type),
    ['terminal.opened', 'terminal.output'],
  )
})

t.test('a client that exceeds its window is disconnected', async (t) => {
  const it = stage()
  await it.open()
  for (let sent = 0; sent < terminalLimits.input_window; sent += terminalLimits.chunk)
    it.send(input(terminalLimits.chunk))
  t.equal(it.closed(), undefined)
  it.say({ type: 'terminal.ack', bytes: 10 })
  it.send(input(10))
  t.equal(it.closed(), undefined)
  it.send(input(1))
  t.equal(it.closed(), 4429)
})

t.test('lost output ends the terminal', async (t) => {
  const it = stage()
  await it.open()
  it.say({ type: 'terminal.output', sequence: 1, data: 'eA==' })
  t.equal(it.code(), 'service_unavailable')
  t.ok(it.towards.some(({ type }) => type === 'terminal.close'))
})

t.test('an environment without a worker is started, once', async (t) => {
  const it = stage({ answers: [undefined, undefined, undefined, { ok: true }], state: 'stopped' })
  await it.open()
  await it.advance(2000)
  t.match(it.sent, [{ type: 'terminal.opened' }])
  t.equal(it.commands.filter((name) => name === 'environment.start_worker').length, 1)
})
t.test('the wait for a worker is bounded', async (t) => {
  const it = stage({ answers: [undefined], state: 'starting' })
  await it.open()
  await it.advance(terminalLimits.start + 1000)
  t.equal(it.code(), 'environment_worker_unavailable')
  t.equal(it.gone(), 1)
})
t.test('a terminal whose worker cannot be started is refused immediately', async (t) => {
  const attached = stage({ answers: [undefined], state: 'stopped', provider: 'worker' })
  await attached.open()
  t.equal(attached.code(), 'environment_worker_unavailable')
  const destroyed = stage({
    answers: [undefined],
    state: 'stopped',
    started: refuse('environment_not_ready'),
  })
  await destroyed.open()
  t.equal(destroyed.code(), 'environment_not_ready')
  const full = stage({ answers: [{ ok: false, code: 'rate_limit_exceeded', message: 'full' }] })
  await full.open()
  t.equal(full.code(), 'rate_limit_exceeded')
})
t.test('the wait for a worker without terminals ends early', async (t) => {
  const it = stage({ answers: [undefined], state: 'connected' })
  await it.open()
  await it.advance(10_000)
  t.equal(it.code(), 'environment_worker_unavailable')
})

t.test('a terminal that was closed while it was opened is closed at the worker', async (t) => {
  const it = stage()
  it.send({ type: 'terminal.open', columns: 80, rows: 24 })
  it.connection.ended()
  await settleAll()
  t.strictSame(it.towards, [{ type: 'terminal.close' }])
  t.strictSame(it.sent, [])
})

t.test('a terminal ends without an opening, without use, and after its duration', async (t) => {
  const unopened = stage()
  await unopened.advance(terminalLimits.open)
  t.equal(unopened.closed(), 4408)
  const idle = stage()
  await idle.open()
  for (let at = 0; at <= terminalLimits.idle; at += terminalLimits.beat) {
    await idle.advance(terminalLimits.beat)
    idle.say({ type: 'beat' })
  }
  await idle.advance(terminalLimits.beat)
  t.match(idle.sent.at(-1), { error: { message: /idle/ } })
})
t.test('a terminal ends when the gateway of the worker is silent', async (t) => {
  const it = stage()
  await it.open()
  await it.advance(terminalLimits.silence)
  t.equal(it.closed(), undefined)
  await it.advance(terminalLimits.beat)
  t.match(it.sent.at(-1), { error: { message: /lost/ } })
})
t.test('a person who loses the permission loses the terminal', async (t) => {
  const it = stage()
  await it.open()
  it.it.verdict = refuse('service_unavailable')
  await it.advance(terminalLimits.beat)
  t.equal(it.closed(), undefined, 'not while it cannot be determined')
  it.it.verdict = refuse('permission_denied')
  await it.advance(terminalLimits.beat)
  t.equal(it.closed(), 4403)
})

t.test('a terminal also ends between two beats, and while its worker starts', async (t) => {
  const it = stage()
  await it.open()
  it.it.verdict = refuse('unauthorized')
  await it.it.look()
  t.equal(it.closed(), 4403)
  const waiting = stage({ answers: [undefined], state: 'starting' })
  await waiting.open()
  waiting.it.verdict = refuse('permission_denied')
  await waiting.it.look()
  t.equal(waiting.closed(), 4403)
  t.equal(waiting.gone(), 1)
})

t.test('input is a use of the credential, output is not', async (t) => {
  const it = stage()
  await it.open()
  it.say({ type: 'terminal.output', sequence: 0, data: 'eA==' })
  it.send({ type: 'terminal.ack', bytes: 1 })
  t.equal(it.it.uses, 0)
  it.send(input(1))
  t.equal(it.it.uses, 1)
})
