/** Deliberate faults of replays: owners read altered entries from the journal. */
import type { HostDeps } from '../../../nodes/host/deps.ts'
import { envelopeText, parseEnvelope } from '../../../nodes/host/memory/codec.ts'
import type { Envelope } from '../../../protocol/entry.ts'
import type { Plant } from '../simulation.ts'

/**
 * Returns the dependencies of a host, with `change` applied to every envelope that is read from the
 * journal.
 */
function rereading(
  deps: HostDeps,
  change: (envelope: Envelope, sequence: number) => Envelope,
): HostDeps {
  return {
    ...deps,
    journal: {
      ...deps.journal,
      read: async function* (partition, shard, from) {
        for await (const stored of deps.journal.read(partition, shard, from)) {
          const changed = change(parseEnvelope(envelopeText(stored.data)), stored.sequence)
          yield { ...stored, data: new TextEncoder().encode(JSON.stringify(changed)) }
        }
      },
    },
  }
}

/**
 * A replay restores neither the replies of commands nor the ids of decided commands, except the ids
 * of commands that other actors sent as effects.
 */
const forgetful: Plant = {
  name: 'forgets replies on replay',
  seed: 14,
  deps: (deps) => rereading(deps, unsigned),
}
function unsigned(envelope: Envelope, sequence: number): Envelope {
  const entries = envelope.entries.map(({ reply: _, ...entry }, i) =>
    entry.command.id.startsWith('e:')
      ? entry
      : { ...entry, command: { id: `gone:${sequence}.${i}`, name: entry.command.name } },
  )
  return { ...envelope, entries }
}

/** An entry that is read from the journal lacks its last event. */
const shortened: Plant = {
  name: 'decodes one event too few',
  seed: 30,
  deps: (deps) =>
    rereading(deps, (envelope) => ({
      ...envelope,
      entries: envelope.entries.map((entry) =>
        Array.isArray(entry.events) ? { ...entry, events: entry.events.slice(0, -1) } : entry,
      ),
    })),
}

export const replayPlants: readonly Plant[] = [forgetful, shortened]
