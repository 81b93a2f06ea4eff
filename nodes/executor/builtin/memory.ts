/** Built-in actions on an agent's own memory: remember, recall, forget. */
import { isRefusal } from '../../../protocol/errors.ts'
import type { SaveMemory } from '../../../protocol/memory/schema.ts'
import { act } from './act.ts'
import type { BuiltinFunction, Called } from './builtin.ts'

const memoryOf = ({ project, call }: Called) => ({
  project,
  kind: 'memory' as const,
  id: call.actor.principal_id,
})
const from = ({ call }: Called) => ({
  ...(call.run_id !== undefined && { source_run_id: call.run_id }),
})
/** Default maximum number of recalled entries. */
const DEFAULT_LIMIT = 10

/** Saves an entry. The result has its key and version. */
export const remember: BuiltinFunction = async (service, called) => {
  const { key, ...wish } = called.call.parameters as SaveMemory & { readonly key: string }
  const done = await act(service, called, memoryOf(called), 'memory.remember', {
    ...wish,
    memory_key: key,
    ...from(called),
  })
  if (isRefusal(done)) return done
  const { version } = done.reply
  return { key, version }
}
/** Deletes an entry, if it exists. */
export const forget: BuiltinFunction = async (service, called) => {
  const key = String(called.call.parameters['key'])
  const done = await act(service, called, memoryOf(called), 'memory.discard', {
    memory_key: key,
    ...from(called),
  })
  return isRefusal(done) ? done : { key, ...done.reply }
}
/** Reads the entries that match the query, or all entries if there is no query, up to the limit. */
export const recall: BuiltinFunction = async (
  { world },
  { project, call: { actor, parameters } },
) => {
  const { query, limit = DEFAULT_LIMIT } = parameters as { query?: string; limit?: number }
  const page = await world.view(project, 'memory.entries', {
    id: actor.principal_id,
    limit,
    ...(query !== undefined && { query }),
  })
  return isRefusal(page)
    ? page
    : {
        entries: page.items.map(({ key, kind, summary, content, updated_at }) => ({
          key,
          kind,
          ...(summary !== undefined && { summary }),
          content,
          updated_at,
        })),
      }
}
