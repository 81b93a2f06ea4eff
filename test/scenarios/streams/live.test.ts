/**
 * Property: with several tabs, each subscription receives every event after its cursor exactly once
 * and in order, regardless of when connections, tabs or the hub end.
 */
import fc from 'fast-check'
import t from 'tap'
import { readTranscript, Transcript, type TranscriptFrame } from '../../../client/transcript.ts'
import type { LiveFrame, LiveStatus, LiveSubscription } from '../../../console/live/live.ts'
import type { LivePorts, MessageFromHub, MessageToHub } from '../../../console/live/messages.ts'
import { PageLive } from '../../../console/live/page.ts'
import { Registry } from '../../../console/live/registry.ts'
import { service } from '../../support/service.ts'
import { listOf, until, waiting } from '../support/given.ts'

const s = await service({ BATON_STREAM_IDLE: '0' })
t.teardown(() => s.stop())
const credential = { url: s.url, headers: { authorization: `Bearer ${s.key}` }, identity: '' }

/**
 * Returns ports whose connections the test can break. Their timers run 10 times as fast, or 100
 * times as fast for delays of 10 s or more.
 */
function fragile() {
  const open = new Set<AbortController>()
  let requests = 0
  const ports: LivePorts = {
    later: (ms, run) => {
      const timer = setTimeout(run, ms / (ms < 10_000 ? 10 : 100))
      return () => clearTimeout(timer)
    },
    random: Math.random,
    fetch: async (input, init) => {
      requests++
      const lost = new AbortController()
      const { signal } = init ?? {}
      const abort = () => lost.abort()
      signal?.addEventListener('abort', abort)
      open.add(lost)
      lost.signal.addEventListener('abort', () => open.delete(lost))
      return fetch(input, { ...init, signal: lost.signal })
    },
  }
  return {
    ports,
    get open() {
      return open.size
    },
    get requests() {
      return requests
    },
    lose: () => {
      for (const one of [...open]) one.abort()
    },
  }
}

interface Seen {
  readonly subscription: LiveSubscription
  readonly frames: LiveFrame[]
  readonly statuses: LiveStatus[]
  stop(): void
}
/** Returns a tab whose port can stop without a closing message, as if its process were killed. */
function tabOf(registry: () => Registry, ports: LivePorts) {
  let deaf = false
  const live = new PageLive(
    (receive) => {
      let open = true
      const hub = registry()
      const port = {
        send: (message: MessageFromHub) =>
          void setImmediate(() => {
            if (open && !deaf) receive(structuredClone(message))
          }),
      }
      return {
        send: (message: MessageToHub) => {
          if (open && !deaf) hub.receive(port, structuredClone(message))
        },
        close: () => {
          open = false
        },
      }
    },
    credential,
    ports.later,
    (error) => t.fail(String(error)),
  )
  const follows = new Set<Seen>()
  return {
    live,
    follows,
    follow(subscription: LiveSubscription): Seen {
      const frames: LiveFrame[] = []
      const statuses: LiveStatus[] = []
      const stop = live.follow(subscription, {
        frame: (frame) => frames.push(frame),
        state: (status) => statuses.push(status),
      })
      const seen: Seen = {
        subscription,
        frames,
        statuses,
        stop: () => {
          follows.delete(seen)
          stop()
        },
      }
      follows.add(seen)
      return seen
    },
    kill: () => {
      deaf = true
      follows.clear()
      live.close()
    },
  }
}

const agent = await s.ok('agent.create', {
  name: 'talker',
  system_prompt: `script:\n  - when: {after: '*'}\n    say: "hello"\n`,
})
let made = 0
const cursorOf = ({ cursor }: LiveFrame): number => Number(cursor)
const numbers = (frames: readonly LiveFrame[]): number[] =>
  frames.filter(({ cursor }) => cursor !== undefined).map(cursorOf)

const step = fc.record({
  act: fc.constantFrom(
    'follow',
    'follow',
    'follow',
    'unfollow',
    'send',
    'send',
    'signal',
    'turn',
    'lose',
    'lose',
    'kill',
    'worker',
    'pause',
  ),
  tab: fc.nat({ max: 2 }),
  topic: fc.constantFrom('run' as const, 'runs' as const, 'channel' as const, 'session' as const),
  resume: fc.boolean(),
})

t.test('nothing is missed and nothing is repeated', { timeout: 100_000 }, async (t) => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 30, maxLength: 40 }), async (steps) => {
      const net = fragile()
      let registry = new Registry(net.ports)
      const [run, channel, session] = await Promise.all([
        s.ok('run.start', { spec: waiting('go', {}, {}) }),
        s.ok('channel.create', { name: `c-${++made}` }),
        s.ok('session.create', { agent_id: agent['id'], session_key: `k-${++made}` }),
      ])
      const target = { run: run['id'], channel: channel['id'], session: session['id'] }
      const tabs = [0, 1, 2].map(() => tabOf(() => registry, net.ports))
      const ended: Seen[] = []
      let sent = 0
      for (const { act, tab: index, topic, resume } of steps) {
        const tab = tabs[index]
        if (!tab) continue
        if (act === 'follow') {
          const known = [...tabs.flatMap(({ follows }) => [...follows])].find(
            ({ subscription, frames }) => subscription.topic === topic && frames.length > 0,
          )
          const after = resume && topic !== 'session' ? known?.frames.at(-1)?.cursor : undefined
          tab.follow({
            project: 'default',
            topic,
            ...(topic !== 'runs' && { target: String(target[topic]) }),
            ...(after !== undefined && { after }),
          })
        } else if (act === 'unfollow') {
          const [first] = tab.follows
          first?.stop()
          if (first) ended.push(first)
        } else if (act === 'send')
          await s.ok('channel.send', { id: channel['id'], content: String(sent++) })
        else if (act === 'signal')
          await s.ok('run.signal', { id: run['id'], name: `other${sent++}` })
        else if (act === 'turn')
          await s.ok('session.start_turn', {
            session_id: session['id'],
            content: [{ type: 'text', text: 'hi' }],
          })
        else if (act === 'lose') net.lose()
        else if (act === 'kill') {
          tab.kill()
          tabs[index] = tabOf(() => registry, net.ports)
        } else if (act === 'worker') {
          registry = new Registry(net.ports)
          for (const one of tabs) one.live.attach()
        } else await new Promise((resolve) => setTimeout(resolve, 15))
      }
      const open = tabs.flatMap(({ follows }) => [...follows])
      await until(
        async () => open.map(({ statuses }) => statuses.at(-1)?.state),
        (states) => states.every((state) => state === 'live'),
      )
      await s.ok('channel.send', { id: channel['id'], content: 'last' })
      await s.ok('run.signal', { id: run['id'], name: 'go' })
      const transcript = await until(
        () => readTranscript({ ...credential, key: s.key, session_id: String(session['id']) }),
        (one) => [...one.turns.values()].every(({ status }) => status === 'completed'),
      )
      const lastOf = async (name: 'run.events' | 'channel.events', id: unknown) =>
        listOf(
          await s.ok(name, { id, limit: 200, ...(name === 'run.events' ? {} : { since: 0 }) }),
        ).map(({ sequence }) => Number(sequence))
      const timeline = await until(
        () => lastOf('run.events', run['id']),
        (all) => all.length > 0,
      )
      await s.follow('run.events', { id: run['id'] }, () => false)
      const whole = {
        run: await lastOf('run.events', run['id']),
        channel: await lastOf('channel.events', channel['id']),
      }
      t.ok(whole.run.length >= timeline.length)
      for (const { subscription, frames, statuses } of open) {
        const { topic, after } = subscription
        if (topic === 'session') {
          const folded = () => {
            const one = new Transcript()
            for (const { data, cursor } of frames)
              one.apply(data as TranscriptFrame, cursor === undefined ? undefined : String(cursor))
            return one.messages()
          }
          const expected = JSON.stringify(transcript.messages())
          // A subscription without a cursor begins with the newest part of the transcript.
          await until(
            async () => JSON.stringify(folded()),
            (text) => text === expected,
          )
        } else if (topic === 'runs') {
          await until(
            async () => JSON.stringify(frames),
            (text) => text.includes('"completed"') && text.includes(String(run['id'])),
          )
          const got = numbers(frames)
          t.strictSame(
            got,
            [...got].sort((a, b) => a - b),
          )
          t.equal(new Set(frames.map((frame) => JSON.stringify(frame))).size, frames.length)
        } else if (topic === 'run' || topic === 'channel') {
          const last = whole[topic].at(-1)
          await until(
            async () => numbers(frames),
            (got) => got.at(-1) === last || (topic === 'run' && statuses.at(-1)?.state === 'ended'),
          )
          const got = numbers(frames)
          const begin = topic === 'run' ? Number(after ?? 0) : Number(after ?? (got[0] ?? 0) - 1)
          t.strictSame(
            got,
            whole[topic].filter((one) => one > begin),
            `${topic} after ${after}`,
          )
        }
      }
      for (const { frames, subscription } of ended) {
        if (subscription.topic === 'session') continue
        const got = numbers(frames)
        t.strictSame(
          got,
          [...new Set(got)].sort((a, b) => a - b),
          'also before an end',
        )
      }
      for (const tab of tabs) tab.live.close()
      await until(
        async () => net.open,
        (count) => count === 0,
      )
    }),
    { numRuns: 5, endOnFailure: true },
  )
})
