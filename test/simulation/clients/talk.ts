/**
 * Clients of agents: they send messages, some of them twice, send nudges, append and compact
 * messages, cancel turns and sessions, and answer questions. They use a separate random stream, and
 * are present only for some seeds.
 */
import type { SessionState } from '../../../actors/sessions/state.ts'
import type { Address } from '../../../protocol/entry.ts'
import { interactionOf } from '../checks/interactions.ts'
import { type Dice, fork } from '../faults/dice.ts'
import type { Simulation } from '../simulation.ts'
import { Follower } from './follower.ts'
import { definitionOf } from './model.ts'

/** The share of seeds with clients of agents. */
const TALKING = 0.4
const AGENT = { agent_id: 'agt_1', agent_name: 'Bot' } as const

export class Talk {
  readonly #sim: Simulation
  readonly #dice: Dice
  readonly #sessions = new Map<string, Address>()
  #said = 0

  constructor(sim: Simulation) {
    this.#sim = sim
    this.#dice = fork(sim.seed, 'talk')
  }
  /**
   * Schedules the actions of these clients, if they are present for the seed.
   * @param end milliseconds until the faults end.
   */
  plan(end: number): void {
    if (!this.#dice.chance(TALKING)) return
    for (let i = 4 + this.#dice.below(12); i > 0; i--)
      this.#sim.timeline.after(this.#dice.between(500, end), () => this.#act())
  }

  #act(): void {
    const dice = this.#dice
    const session = dice.pick([...this.#sessions.values()])
    const what = dice.unit()
    if (!session || what < 0.45) this.#invoke()
    else if (what < 0.65) this.#answer(session)
    else if (what < 0.8) this.#nudge(session)
    else if (what < 0.87)
      this.#send(session, 'session.cancel_turn', {
        turn_id: dice.pick(Object.keys(this.#stateOf(session)?.turns ?? {})) ?? 'turn_x',
      })
    else if (what < 0.9) this.#send(session, 'session.cancel', {})
    else if (what < 0.96)
      this.#send(session, 'session.append', {
        messages: [{ role: 'user', content: [{ type: 'text', text: `noted ${++this.#said}` }] }],
        definition: definitionOf(dice),
      })
    else this.#send(session, 'session.compact', { definition: definitionOf(dice) })
  }
  #invoke(): void {
    const dice = this.#dice
    const project = dice.pick(this.#sim.projects) ?? ''
    const session_key = `chat ${dice.below(2)}`
    const id = this.#sim.up()[0]?.world.id('agent_session', `${project} ${session_key}`)
    if (id === undefined) return
    if (!this.#sessions.has(id)) {
      this.#sessions.set(id, { project, kind: 'session', id })
      if (dice.chance(0.5)) this.#sim.follow(new Follower(this.#sim, project, id, 'session'))
    }
    this.#sim.clients.send({
      project,
      kind: 'session',
      id,
      name: 'agent.invoke',
      input: {
        project,
        agent_ref: { id: AGENT.agent_id },
        session: { session_key },
        input: {
          content: [{ type: 'text', text: `message ${++this.#said}` }],
          ...(dice.chance(0.5) && { idempotency_key: `m${dice.below(4)}` }),
        },
        place: { root: id, generation: 0, session_key, ...AGENT },
        definition: definitionOf(dice),
      },
    })
  }
  #nudge(session: Address): void {
    const dice = this.#dice
    const content = `nudge ${dice.below(3)}`
    this.#send(session, 'session.nudge', {
      content,
      content_hash: content,
      definition: definitionOf(dice),
      wake: dice.chance(0.4),
      ...(dice.chance(0.5) && { idempotency_key: `n${dice.below(3)}` }),
    })
  }
  #answer({ id: session_id }: Address): void {
    const asked = [...this.#sim.history.actors.values()].filter(
      (past) =>
        past.address.kind === 'interaction' &&
        interactionOf(past)?.consumer.agent_tool?.session_id === session_id &&
        interactionOf(past)?.status === 'pending',
    )
    const one = this.#dice.pick(asked)?.address
    if (one)
      this.#sim.clients.send({
        ...one,
        name: 'interaction.respond',
        input: { project: one.project, id: one.id, value: this.#dice.chance(0.7), roles: [] },
      })
  }
  #send(to: Address, name: string, input: object): void {
    this.#sim.clients.send({
      ...to,
      name,
      input: { project: to.project, session_id: to.id, ...input },
    })
  }
  #stateOf(session: Address): SessionState | undefined {
    this.#sim.history.readOn()
    return this.#sim.history.of(session)?.state as SessionState | undefined
  }
}
