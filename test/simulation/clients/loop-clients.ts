/**
 * Clients of loops: they create, pause and resume loops, and start runs of loops. At the end of the
 * simulation, they delete the projects.
 */
import type { Address, Command } from '../../../protocol/entry.ts'
import { makeId, slotOf } from '../../../protocol/ids.ts'
import type { Trigger } from '../../../protocol/loops/schema.ts'
import type { Step } from '../../../protocol/workflows/spec.ts'
import { type Dice, fork } from '../faults/dice.ts'
import type { Simulation } from '../simulation.ts'

const policies = ['allow', 'queue', 'skip', 'replace'] as const

function triggersOf(dice: Dice): Trigger[] {
  const rule = {
    ...(dice.chance(0.3) && { concurrency_policy: dice.pick(policies) ?? 'queue' }),
    ...(dice.chance(0.3) && { max_concurrent_runs: 1 + dice.below(2) }),
  }
  const conditions = ['event.n > 0', 'event.n == 1', 'event.n.x.y < event.order.z']
  return [
    {
      kind: 'event',
      key: 'e',
      ...rule,
      config: {
        event_type:
          dice.pick(['order.paid', 'order.*', 'interaction.resolved'] as const) ?? 'order.*',
        ...(dice.chance(0.4) && { condition: dice.pick(conditions) ?? 'true' }),
      },
    },
    ...(dice.chance(0.3)
      ? [{ kind: 'event' as const, key: 'all', config: { event_type: 'order.*' } }]
      : []),
    ...(dice.chance(0.35)
      ? [{ kind: 'schedule' as const, key: 's', config: { interval: `${2 + dice.below(4)}s` } }]
      : []),
  ]
}
function stepsOf(dice: Dice): Step[] {
  const kinds: Step[] = [
    { id: 'work', kind: 'action', config: { action_name: 'work' } },
    { id: 'nap', kind: 'sleep', config: { duration: `${dice.below(1500)}ms` } },
    {
      id: 'gate',
      kind: 'wait_for_event',
      config: { event_type: 'signal.go' },
      timeout: { duration: '3s' },
    },
  ]
  return kinds
    .slice(dice.chance(0.8) ? 0 : 1, 1 + dice.below(3))
    .concat({ id: 'end', kind: 'sleep', config: { duration: '0' } })
}

export class LoopClients {
  readonly #sim: Simulation
  readonly #dice: Dice
  readonly #loops: { readonly address: Address; created: boolean }[]

  constructor(sim: Simulation) {
    this.#sim = sim
    this.#dice = fork(sim.seed, 'loops')
    const count = this.#dice.chance(0.5) ? 1 + this.#dice.below(2) : 0
    this.#loops = Array.from({ length: count }, () => ({
      address: {
        project: this.#dice.pick(sim.projects) ?? '',
        kind: 'loop' as const,
        id: makeId('loop', 0, this.#dice.bytes(10), this.#dice.below(sim.shards)),
      },
      created: false,
    }))
  }
  get any(): boolean {
    return this.#loops.length > 0
  }
  act(): void {
    const dice = this.#dice
    const loop = dice.pick(this.#loops)
    if (!loop) return
    const { address } = loop
    const what = dice.unit()
    if (!loop.created) {
      loop.created = true
      this.#send(address, 'loop.create', {
        name: 'Loop',
        concurrency: dice.pick(policies),
        steps: stepsOf(dice),
        triggers: triggersOf(dice),
        definitions: {},
        organization: this.#sim.organization,
      })
    } else if (what < 0.75) this.#start(address)
    else if (what < 0.83)
      this.#send(address, 'loop.update', { status: 'paused', organization: this.#sim.organization })
    else
      this.#send(address, 'loop.update', { status: 'active', organization: this.#sim.organization })
  }
  /** Returns a workflow step that starts a run of a loop; undefined if there are no loops. */
  step(id: string): Step | undefined {
    const loop = this.#dice.pick(this.#loops)
    return loop && { id, kind: 'loop', config: { loop_id: loop.address.id } }
  }
  /** Deletes the projects, if there are loops. The commands are repeated until they succeed. */
  end(): void {
    const { organization, clients, projects } = this.#sim
    if (this.any)
      for (const project of projects)
        clients.insist({
          project,
          kind: 'project',
          id: project,
          name: 'project.end',
          input: { organization },
        })
  }

  #start(to: Address): void {
    const machine = this.#sim.up()[0]
    if (!machine) return
    const key = this.#dice.chance(0.3) ? `key ${this.#dice.below(3)}` : undefined
    const run_id = machine.world.id('run', key && `${to.id} ${key}`, slotOf(to.id))
    this.#send(to, 'loop.start', {
      run_id,
      event: { n: this.#dice.below(3) },
      ...(key !== undefined && { idempotency_key: key }),
    })
  }
  #send({ project, kind, id }: Address, name: Command['name'], input: object): void {
    this.#sim.clients.send({ project, kind, id, name, input: { project, id, ...input } })
  }
}
