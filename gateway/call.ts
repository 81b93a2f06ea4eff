/** A request on its way: what admission found out about it, for the verbs that answer it. */
import { api } from '../protocol/api.ts'
import type { Project } from '../protocol/api/projects.ts'
import type { Row } from '../protocol/contract.ts'
import { isRefusal, refuse, refuseFields, type Refusal } from '../protocol/errors.ts'
import { authorize, enter } from './authorize.ts'
import type { Authentication, Caller } from './authenticate.ts'
import type { Directory } from './directory.ts'
import type { World } from './ports.ts'
import type { Limits } from './rate.ts'
import type { Incoming } from './request.ts'
import { readBody, readQuery } from './validate.ts'

/** What all requests of a gateway share. */
export interface Edge {
  readonly world: World
  readonly directory: Directory
  readonly authentication: Authentication
  /** Absent when nothing is limited. */
  readonly limits: Limits | undefined
}

export interface Call {
  /** The row's name in the table, and its path slots decoded, with the project's id under `project`. */
  readonly name: string
  readonly row: Row
  readonly slots: Readonly<Record<string, string>>
  readonly query: Readonly<Record<string, unknown>>
  readonly body: Readonly<Record<string, unknown>>
  readonly caller: Caller
  /** The project the path names or the run of the path belongs to; absent on rows of the organization. */
  readonly project?: Project | undefined
  readonly request_id: string
  readonly incoming: Incoming
}

/** Id of the project, or of the organization for its own rows. */
export const homeOf = ({ world }: Edge, call: Call): string => call.project?.id ?? world.organization()
/** The name under which actors and views know what this row asks for. */
export const meaning = ({ name, row }: Call): string => row.shape.as ?? name

/** All rows by name. */
export const rows: Readonly<Record<string, Row>> = api

/** A row with what is looked up in it for every request. */
export interface Routed {
  readonly name: string
  readonly row: Row
  /** Names of the path slots, in order. */
  readonly slots: readonly string[]
}

/** The decoded slots of a path, or undefined when an encoding is broken. */
function decodeSlots(names: readonly string[], raw: readonly string[]): Record<string, string> | undefined {
  const slots: Record<string, string> = {}
  try {
    for (const [index, name] of names.entries()) slots[name] = decodeURIComponent(raw[index] ?? '')
    return slots
  } catch {
    return undefined
  }
}

/** The project of a call: named by the path, or the one its run belongs to. A run of a project closed to the caller is not found. */
async function placeOf({ world, directory }: Edge, name: string, row: Row, slots: Readonly<Record<string, string>>, caller: Caller): Promise<Project | undefined | Refusal> {
  const ofRun = row.verb !== 'command' && slots['id'] !== undefined && name.startsWith('run.')
  if (slots['project'] === undefined && !ofRun) return undefined
  const known = await directory.organization()
  if (isRefusal(known)) return known
  if (slots['project'] !== undefined) return enter(caller, known, slots['project'], ofRun)
  const answers = await world.everywhere('locate', { run_id: slots['id'] })
  const found = answers.map((answer) => (isRefusal(answer) ? undefined : (answer as { project?: string } | undefined)?.project)).find((id) => id !== undefined)
  if (found === undefined) return answers.find(isRefusal) ?? refuse('not_found')
  const project = enter(caller, known, found, true)
  return isRefusal(project) ? refuse('not_found') : project
}

/**
 * Admit a request to its row: who calls, how often, where, whether they may, and whether what they sent makes sense, in this
 * order. `headers` are those that every later answer carries; what is known about limits is added to them.
 */
export async function admit(edge: Edge, { name, row, slots: names }: Routed, request_id: string, incoming: Incoming, headers: Record<string, string>): Promise<Call | Refusal | 'aborted'> {
  const { world, authentication, limits } = edge
  const bytes = incoming.body
  if (bytes === 'aborted') return 'aborted'
  if (!world.fresh() && !(await becomesFresh(world))) return refuse('service_unavailable')
  const caller = await authentication.authenticate(incoming.header('authorization'))
  if (isRefusal(caller)) return caller
  if (limits) {
    const admission = await limits(caller.credential.id, world.organization())
    Object.assign(headers, admission.headers)
    if (admission.refused) return admission.refused
  }

  const named = decodeSlots(names, incoming.slots)
  if (!named) return refuseFields({ field: 'path', message: 'is not percent-encoded UTF-8' })
  const project = await placeOf(edge, name, row, named, caller)
  if (isRefusal(project)) return project
  const refused = authorize(world.settings.brand, row.shape.permission, caller)
  if (refused) return refused

  const query = readQuery(row, incoming.query)
  if (isRefusal(query)) return query
  if (bytes === 'too_large') return refuse('payload_too_large', { limit: row.shape.limit ?? BODY_LIMIT })
  const body = row.verb === 'command' ? readBody(row, bytes, incoming.header('content-type')) : {}
  if (isRefusal(body)) return body
  if (project && named['project'] !== undefined) named['project'] = project.id
  return { name, row, slots: named, query, body, caller, project, request_id, incoming }
}

/** Milliseconds that a request waits, and between looks, while the gateway's own lease is stale: a machine that was busy for a moment makes it slow, not wrong. */
const STALE = { wait: 3000, look: 50 } as const
async function becomesFresh(world: World): Promise<boolean> {
  for (let waited = 0; waited < STALE.wait; waited += STALE.look) {
    await new Promise<void>((look) => world.later(STALE.look, look))
    if (world.fresh()) return true
  }
  return false
}

/** Largest body of a row that names no limit, in bytes. */
export const BODY_LIMIT = 1_048_576
