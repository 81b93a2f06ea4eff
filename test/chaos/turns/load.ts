/**
 * The clients of the kill test of turns. Each session sends one message at a time, under its own
 * key, and waits until its follower has shown the end of the turn.
 */
import { setMaxListeners } from 'node:events'
import type { Dice } from '../../simulation/faults/dice.ts'
import type { Asker, Json } from '../ask.ts'
import { SessionFollower } from './follower.ts'
import type { Sent } from './history.ts'
import { kindOf, saidTo } from './plans.ts'

const PROJECT = '/projects/default'
/** The share of messages that are repeated after they were answered. */
const REPEATED = 0.15

interface Options {
  readonly asker: Asker
  readonly dice: Dice
  readonly urls: readonly string[]
  readonly key: string
  readonly agent: string
  readonly now: () => number
  /** When it is aborted, sending stops and all followers are aborted. */
  readonly signal: AbortSignal
}
interface Begun {
  readonly session_id: string
  /** The cursor before the first message. */
  readonly cursor: string
  readonly follower: SessionFollower
}

export class TurnLoad {
  readonly sent: Sent[] = []
  readonly sessions = new Map<number, Begun>()
  readonly oddities: string[] = []
  ended = 0
  readonly #with: Options
  readonly #repeats: Promise<void>[] = []

  constructor(options: Options) {
    this.#with = options
    // Each follower and each pending turn adds a listener to this signal.
    setMaxListeners(0, options.signal)
  }
  /** Sends `turns` messages, distributed across `sessions` sessions. */
  async run(turns: number, sessions: number): Promise<void> {
    await Promise.all(
      Array.from({ length: sessions }, async (_, session) => {
        for (let n = session; n < turns && !this.#with.signal.aborted; n += sessions)
          await this.#turn(session, n)
      }),
    )
    await Promise.all(this.#repeats)
  }

  async #turn(session: number, n: number): Promise<void> {
    const { dice, now } = this.#with
    const sent: Sent = { key: `turn ${n}`, kind: kindOf(n), n, session, at: now(), again: [] }
    this.sent.push(sent)
    const ack = await this.#invoke(sent)
    if (!ack) return
    const turn = String((ack['turn'] as Json)['id'])
    sent.turn = turn
    const { follower } = this.#begun(session, ack)
    if (dice.chance(REPEATED)) this.#repeats.push(this.#again(sent))
    const end = await follower.ended(turn)
    if (!end) return
    sent.seen = { ...end, at: now() }
    this.ended++
  }
  async #invoke({ key, kind, n, session }: Sent): Promise<Json | undefined> {
    const { asker, agent } = this.#with
    const reply = await asker.ask({
      method: 'POST',
      path: `${PROJECT}/agents/invoke`,
      body: {
        agent_ref: { id: agent },
        session: { session_key: `chat ${session}` },
        input: { content: [{ type: 'text', text: saidTo(kind, n) }], idempotency_key: key },
      },
    })
    if (!reply || reply.status < 300) return reply?.body
    this.oddities.push(`${key} was answered ${reply.status} ${JSON.stringify(reply.body)}`)
    return undefined
  }
  async #again(sent: Sent): Promise<void> {
    const { dice, signal } = this.#with
    const wait = dice.between(200, 3000)
    await new Promise<void>((done) => setTimeout(done, wait))
    if (signal.aborted) return
    const ack = await this.#invoke(sent)
    if (ack) sent.again.push(String((ack['turn'] as Json)['id']))
  }
  #begun(session: number, ack: Json): Begun {
    const known = this.sessions.get(session)
    if (known) return known
    const { urls, key, signal } = this.#with
    const [session_id, cursor] = [
      String((ack['session'] as Json)['id']),
      String(ack['resume_cursor']),
    ]
    const turned = session % 2 === 0 ? urls : [...urls].reverse()
    const begun = {
      session_id,
      cursor,
      follower: new SessionFollower({ urls: turned, key, session_id, cursor, signal }),
    }
    this.sessions.set(session, begun)
    return begun
  }
}
