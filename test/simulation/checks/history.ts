/**
 * Reads the journal as it grows, folds the state of every actor from its events, and checks every
 * entry.
 *
 * This file itself checks that only the current owner writes (epochs, chains) and that no command
 * is stored twice. The rules for individual kinds of actors are in other files in this folder.
 */
import { evolve } from '../../../actors/actor.ts'
import type { RunState } from '../../../actors/runs/state.ts'
import { actorKey } from '../../../nodes/host/memory/actor-instance.ts'
import {
  type Address,
  lastCursor,
  type PlacedEntry,
  placeEntries,
} from '../../../protocol/entry.ts'
import type { Simulation } from '../simulation.ts'
import { EventRules } from './events.ts'
import { InteractionRules } from './interactions.ts'
import { JobRules } from './jobs.ts'
import { LoopRules } from './loops.ts'
import { RunRules } from './runs.ts'
import { SessionRules } from './sessions.ts'

export interface Past {
  readonly address: Address
  state: unknown
  prev: number
  /**
   * Every entry with its time. Entries of runs and interactions also contain, as JSON, the record
   * that a read returns after the entry.
   */
  readonly entries: { readonly place: PlacedEntry; readonly at: number; readonly record?: string }[]
}

export class History {
  readonly actors = new Map<string, Past>()
  /** Stored commands, by actor key and command id. */
  readonly commands = new Map<string, { readonly place: PlacedEntry; readonly at: number }>()
  entries = 0
  readonly events: EventRules
  readonly loops: LoopRules
  readonly #sim: Simulation
  readonly #jobs: JobRules
  readonly #runs: RunRules
  readonly #interactions: InteractionRules
  readonly sessions: SessionRules
  readonly #owners = new Map<number, { epoch: number; sequence: number }>()
  #read = 0

  constructor(sim: Simulation) {
    this.#sim = sim
    this.#jobs = new JobRules(sim)
    this.#runs = new RunRules(sim)
    this.loops = new LoopRules(sim)
    this.events = new EventRules(sim, this.loops)
    this.#interactions = new InteractionRules(sim)
    this.sessions = new SessionRules(sim)
  }
  of(address: Address): Past | undefined {
    return this.actors.get(actorKey(address))
  }
  /** Reads the entries that were appended since the last call. */
  readOn(): void {
    const { journal } = this.#sim
    for (; this.#read < journal.messages.length; this.#read++) {
      const message = journal.messages[this.#read]
      if (!message) return
      const envelope = journal.envelope(message)
      const owner = this.#owners.get(message.shard) ?? { epoch: 0, sequence: 0 }
      // If the fence of a shard was refused, the shard appends it later, as a probe.
      const fence = /-(takeover|probe)-/.test(message.message_id)
      const say = (what: string) =>
        this.#sim.violated(
          `journal ${message.sequence} (${message.message_id}) of shard ${message.shard}: ${what}`,
        )
      if (fence ? envelope.epoch <= owner.epoch : envelope.epoch !== owner.epoch)
        say(`epoch ${envelope.epoch} after epoch ${owner.epoch}`)
      if (envelope.prev !== owner.sequence)
        say(`goes on after ${envelope.prev}, but the last one is ${owner.sequence}`)
      this.#owners.set(message.shard, { epoch: envelope.epoch, sequence: message.sequence })
      for (const place of placeEntries(message.sequence, envelope)) this.#enter(place, message.at)
    }
  }

  #enter(place: PlacedEntry, at: number): void {
    const { entry } = place
    const key = actorKey(entry)
    const past: Past = this.actors.get(key) ?? {
      address: { project: entry.project, kind: entry.kind, id: entry.id },
      state: this.#sim.kinds[entry.kind].initial(),
      prev: 0,
      entries: [],
    }
    this.actors.set(key, past)
    this.entries++
    if (entry.prev !== past.prev)
      this.#sim.violated(
        `${key}: entry ${place.cursor} goes on after ${entry.prev}, but its last event is ${past.prev}`,
      )
    const id = `${key} ${entry.command.id}`
    const before = this.commands.get(id)
    if (before)
      this.#sim.violated(
        `${key}: command ${entry.command.id} (${entry.command.name}) took effect at ` +
          `${before.place.cursor} and again at ${place.cursor}`,
      )
    this.commands.set(id, { place, at })
    if (entry.kind === 'queue') this.#jobs.check(place, at)
    if (entry.kind === 'run') {
      this.#runs.check(place)
      this.events.checkRun(place)
    }
    if (entry.kind === 'events') this.events.check(place)
    if (entry.kind === 'interaction') this.#interactions.check(place)
    if (entry.kind === 'loop') this.loops.check(place)
    if (entry.kind === 'queue') this.sessions.checkQueue(place)
    if (entry.kind === 'session') this.sessions.check(place)
    try {
      for (const event of entry.events)
        past.state = evolve(this.#sim.kinds[entry.kind], past.state, event, entry.origin.at)
    } catch (error) {
      this.#sim.violated(`${key}: entry ${place.cursor} cannot be folded: ${String(error)}`)
    }
    if (entry.kind === 'run') this.loops.checkRun(place, past.state as RunState)
    past.prev = lastCursor(place)
    const record =
      entry.kind === 'run' || entry.kind === 'interaction'
        ? JSON.stringify(
            this.#sim.kinds[entry.kind].ask?.['get']?.(
              past.state as never,
              undefined as never,
              at,
            ) ?? null,
          )
        : undefined
    past.entries.push({ place, at, ...(record !== undefined && { record }) })
  }
}
