/** Publishing events: the edge gives them their ids, so that a repeat of the request means the same events, and completes the answer. */
import type { Named } from '../protocol/api/events.ts'
import type { Prepare, Prepared } from './prepare.ts'

const named = (make: (index: number) => string, count: number): Named => ({ ids: Array.from({ length: count }, (_, index) => make(index)) })

const one: Prepare = ({ world }, _, { seed }): Prepared => ({ input: { ...named(() => world.id('source_event', seed), 1) } })
const many: Prepare = ({ world }, { body }, { seed }): Prepared => {
  const input = named((index) => world.id('source_event', seed && `${seed} ${index}`), (body['events'] as readonly unknown[]).length)
  const all = { items: input.ids.map((source_event_id) => ({ source_event_id })) }
  return { input: { ...input }, answer: async (reply) => ((reply as { items: readonly unknown[] }).items.length > 0 ? reply : all) }
}

/** Preparations of rows of events, by row name. */
export const eventPreparations: Readonly<Record<string, Prepare>> = { 'event.publish': one, 'event.publish_many': many }
