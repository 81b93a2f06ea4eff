/**
 * Clients that start runs (including runs of loops, see loop-clients.ts), control them, answer
 * their questions and read them. Each command goes through some gateway. A client that receives no
 * answer repeats its command or gives up. A client that receives an answer sometimes repeats the
 * command, to check that the answer is the same.
 */

import type { InteractionState } from '../../../actors/interactions/state.ts'
import type { RunState } from '../../../actors/runs/state.ts'
import type { Outcome } from '../../../gateway/ports.ts'
import type { Address, Command } from '../../../protocol/entry.ts'
import { errors, isRefusal } from '../../../protocol/errors.ts'
import type { Spec } from '../../../protocol/workflows/spec.ts'
import type { Past } from '../checks/history.ts'
import { interactionOf } from '../checks/interactions.ts'
import type { Simulation } from '../simulation.ts'
import { Follower } from './follower.ts'
import { people, signals, specOf } from './specs.ts'

/** Milliseconds for which a client waits for an answer from a gateway. */
const ANSWER_TIMEOUT_MS = 9000
/**
 * Milliseconds until a command that must succeed is repeated after a refusal or a missing answer.
 */
const RETRY_EVERY_MS = 500
const ATTEMPTS = 6

export class Clients {
  /** The number of pending requests. */
  busy = 0
  readonly #sim: Simulation
  readonly #runs: Address[] = []

  constructor(sim: Simulation) {
    this.#sim = sim
  }
  runs(): readonly Address[] {
    return this.#runs
  }
  act(): void {
    const { dice } = this.#sim
    const what = dice.unit()
    const run = dice.chance(0.8) ? dice.pick(this.#runs) : (this.#ofLoop() ?? dice.pick(this.#runs))
    if (this.#sim.loops.any && dice.chance(0.25)) {
      this.#sim.loops.act()
      return
    }
    const asked = this.#asked()
    const open = asked.filter((past) =>
      ['pending', 'in_review'].includes(interactionOf(past)?.status ?? ''),
    )
    if (open.length > 0 && dice.chance(0.35))
      this.#answer(dice.pick(open) as Past, dice.chance(0.4) ? 2 : 1)
    else if (!run || what < 0.3) this.#start()
    else if (what < 0.45) void this.read(run, 'get')
    else if (what < 0.6)
      this.#steer(
        run,
        'run.signal',
        dice.chance(0.8)
          ? {
              name: dice.pick(signals),
              payload: { n: 1 },
              ...(dice.chance(0.5) && { idempotency_key: `k${dice.below(3)}` }),
            }
          : { step_key: `s${dice.below(3)}`, result: { given: true } },
      )
    else if (what < 0.67) this.#steer(run, 'run.cancel', {})
    else if (what < 0.74) this.#steer(run, 'run.retry', { wall_clock_extend_seconds: 60 })
    else if (what < 0.8) this.#steer(run, 'run.resume', {})
    else if (what < 0.83) this.#again()
    else if (what < 0.86 && asked.length > 0) this.#answer(dice.pick(asked) as Past, 1)
    else if (what < 0.96) this.#publish()
    else this.#note()
  }

  #start(): void {
    const { dice, projects } = this.#sim
    const machine = this.#sim.up()[0]
    const project = dice.pick(projects) ?? ''
    if (!machine) return
    const key = dice.chance(0.5) ? `key ${dice.below(6)}` : undefined
    const id = machine.world.id('run', key && `${project} ${key}`)
    const address: Address = { project, kind: 'run', id }
    const known = this.#runs.some((run) => run.id === id)
    if (!known) {
      this.#runs.push(address)
      if (dice.chance(0.5)) this.#sim.follow(new Follower(this.#sim, project, id))
    }
    const [first] = [...this.#sim.records.sent.values()].filter(
      ({ command }) => command.id === id && command.name === 'run.start',
    )
    const input = first?.command.input ?? {
      project,
      spec: this.#spec(),
      ...(key !== undefined && { idempotency_key: key }),
      ...(dice.chance(0.2) && { priority: dice.below(3) }),
    }
    this.send({ ...address, name: 'run.start', input })
  }
  #spec(): Spec {
    const { dice, loops } = this.#sim
    const spec = specOf(dice)
    const asking = dice.chance(0.15) ? loops.step(`s${spec.steps.length}`) : undefined
    return asking ? { ...spec, steps: [...spec.steps, asking] } : spec
  }
  #steer(to: Address, name: string, input: object, person?: string): void {
    this.send({ ...to, name, input: { project: to.project, id: to.id, ...input } }, person)
  }
  /** Returns a random run that a loop started; undefined if no loop has started a run. */
  #ofLoop(): Address | undefined {
    const { history, loops, dice } = this.#sim
    if (!loops.any) return undefined
    history.readOn()
    return dice.pick(
      [...history.actors.values()].filter(
        ({ address, state }) =>
          address.kind === 'run' && (state as RunState).record.loop_id !== undefined,
      ),
    )?.address
  }
  #asked(): Past[] {
    this.#sim.history.readOn()
    return [...this.#sim.history.actors.values()].filter(
      ({ address }) => address.kind === 'interaction',
    )
  }
  /**
   * Acts on an interaction as people do: answers it, sometimes twice or too late, reviews it or
   * cancels it.
   */
  #answer({ address, state }: Past, times: number): void {
    const { dice } = this.#sim
    const { status, target_user_ids, resolution_policy } = (state as InteractionState).record
    const wanted =
      status === 'in_review' ? (resolution_policy.review?.reviewer_user_ids ?? []) : target_user_ids
    if (dice.chance(0.3)) void this.read(address, 'get')
    for (let i = 0; i < times; i++) {
      const person = dice.pick(dice.chance(0.85) ? wanted : people) ?? ''
      const reviews = dice.chance(status === 'in_review' ? 0.8 : 0.1)
      if (dice.chance(0.06))
        this.#steer(address, 'interaction.cancel', { reason: 'no more' }, person)
      else if (reviews)
        this.#steer(
          address,
          'interaction.review',
          { action: dice.chance(0.6) ? 'accept' : 'request_changes', comment: 'so' },
          person,
        )
      else
        this.#steer(
          address,
          'interaction.respond',
          { value: dice.chance(0.7), roles: [], ...(dice.chance(0.1) && { link: { round: 1 } }) },
          person,
        )
    }
  }
  #publish(): void {
    const { dice, projects } = this.#sim
    const project = dice.pick(projects) ?? ''
    const id = this.#sim.up()[0]?.world.id('source_event')
    if (id === undefined) return
    const one = {
      event_type: dice.chance(0.8) ? 'order.paid' : 'order.lost',
      event: { n: dice.below(3) },
      ...(dice.chance(0.4) && { idempotency_key: `k${dice.below(4)}` }),
    }
    this.send({
      project,
      kind: 'events',
      id: project,
      name: 'event.publish',
      input: { project, ids: [id], ...one },
    })
  }
  #note(): void {
    const { dice, ledgers } = this.#sim
    const [from, to] = [dice.pick(ledgers) ?? '', dice.pick(ledgers) ?? '']
    this.send({ project: from, kind: 'project', id: from, name: 'ledger.add', input: { to } })
  }
  /** Sends an earlier command again, under the same id. */
  #again(): void {
    const known = this.#sim.dice.pick(
      [...this.#sim.records.sent.values()].filter(
        ({ command }) => command.fingerprint !== undefined,
      ),
    )
    if (known) void this.#perform(known.command)
  }
  /** Sends a new command, possibly several times. */
  send(what: Omit<Command, 'command_id' | 'origin' | 'fingerprint'>, person = 'user_1'): void {
    const { dice } = this.#sim
    const keyed = dice.chance(0.5)
    void this.#perform({
      ...what,
      command_id: `k:${this.#sim.unique()}`,
      origin: { at: 0, principal: { type: 'user', id: person } },
      ...(keyed && { fingerprint: 'same' }),
    })
  }

  /** Sends a command repeatedly until it receives an answer that is not a refusal. */
  insist(what: Omit<Command, 'command_id' | 'origin' | 'fingerprint'>): void {
    const command: Command = {
      ...what,
      command_id: `k:${this.#sim.unique()}`,
      origin: { at: 0, principal: { type: 'system', id: 'system' } },
    }
    const decided = () =>
      this.#sim.records.sent
        .get(command.command_id)
        ?.answers.some(({ outcome }) => !isRefusal(outcome))
    const again = (): void =>
      void this.#perform(command).then(() => {
        if (!decided()) this.#sim.timeline.after(RETRY_EVERY_MS, again)
      })
    again()
  }
  /**
   * Repeats a command until it is answered or the client gives up. A command with a fingerprint may
   * be repeated even after it is answered.
   */
  async #perform(command: Command): Promise<void> {
    const { records, dice } = this.#sim
    const sent = records.sent.get(command.command_id) ?? { command, answers: [] }
    records.sent.set(command.command_id, sent)
    this.busy++
    for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
      const from = this.#sim.timeline.now
      const outcome = await this.#through((world) => world.command(command))
      const answered =
        outcome !== undefined && !(isRefusal(outcome) && errors[outcome.refused].status === 503)
      this.#sim.note(
        () =>
          `client: ${command.name} ${command.id} ${command.command_id} at ${Math.round(from)}: ` +
          `${outcome === undefined ? 'no answer' : isRefusal(outcome) ? outcome.refused : 'done'}`,
      )
      if (answered) sent.answers.push({ from, at: this.#sim.timeline.now, outcome })
      if (answered && !(command.fingerprint !== undefined && dice.chance(0.15))) break
      if (!answered && dice.chance(0.15)) break
      await new Promise<void>((again) => void this.#sim.timeline.after(dice.between(1, 500), again))
    }
    this.busy--
  }
  /** Reads an actor through some gateway. Returns the reply, or undefined if none arrived. */
  async read(to: Address, name: string): Promise<unknown> {
    this.busy++
    const from = this.#sim.timeline.now
    const reply = await this.#through((world) => world.ask(to, name, {}))
    if (reply !== undefined && !isRefusal(reply))
      this.#sim.records.reads.push({ to, name, from, at: this.#sim.timeline.now, reply })
    this.busy--
    return reply
  }
  /**
   * Calls a gateway that is up. Returns undefined if no gateway is up, or if the gateway's machine
   * dies or does not answer.
   */
  #through<T>(
    ask: (world: {
      command(command: Command): Promise<Outcome>
      ask(to: Address, name: string, input: object): Promise<unknown>
    }) => Promise<T>,
  ): Promise<T | undefined> {
    const machine = this.#sim.dice.pick(this.#sim.up())
    return new Promise((resolve) => {
      this.#sim.timeline.after(machine ? ANSWER_TIMEOUT_MS : 200, () => resolve(undefined))
      machine?.onDeath.push(() => this.#sim.timeline.after(50, () => resolve(undefined)))
      machine?.enter(
        () =>
          void ask(machine.world as never).then((answer) => {
            if (machine.alive) resolve(answer)
          }),
      )
    })
  }
}
