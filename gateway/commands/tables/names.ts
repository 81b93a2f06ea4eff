/**
 * Claims the name of a table before the table is created or renamed. This is a separate command,
 * because each name is held by an actor of its own (the holder). The table confirms the claim in
 * the commit that uses it. After a refused command, the claim is released through the table, so
 * that the table never uses it. Any other unused claim expires.
 */
import type { Origin } from '../../../protocol/entry.ts'
import { isRefusal, isServiceFault, type Refusal, refuse } from '../../../protocol/errors.ts'
import type { NameClaim } from '../../../protocol/tables/events.ts'
import { type Call, type Edge, newId, scopeId } from '../../call.ts'
import type { Identity } from '../../http/idempotency.ts'
import { sendNew } from '../../http/send.ts'
import type { Prepare, Prepared } from '../../prepare.ts'

const holderOf = ({ world }: Edge, project: string, name: string): string =>
  world.id('table_name', `${project}/${name}`)

/** Claims the name in the body of a call. Returns `already_exists` if another table uses it. */
async function claimName(
  edge: Edge,
  call: Call,
  table_id: string,
  origin: Origin,
): Promise<NameClaim | Refusal> {
  const { world } = edge
  const project = scopeId(edge, call)
  const name = String(call.body['name'])
  const holder = holderOf(edge, project, name)
  const to = { project, kind: 'table_name', id: holder } as const
  const outcome = await sendNew(world, to, 'table_name.claim', { name, table_id }, origin)
  return isRefusal(outcome) ? outcome : { holder, claim: outcome.reply.claim }
}

/**
 * Adds a claim on a name to a command. Claims the name again if a claim expires before the table
 * uses it.
 * @param first the first claim. If absent, the name is claimed only after the table has refused
 * the command without a claim, so a command that the table recognizes as a repeat claims no name.
 */
function withClaim(
  edge: Edge,
  call: Call,
  table_id: string,
  origin: Origin,
  first?: NameClaim,
): Prepared {
  const { world } = edge
  const until = world.monotonic() + world.settings.deadline
  const none = {
    holder: holderOf(edge, scopeId(edge, call), String(call.body['name'])),
    claim: 0,
  }
  let last = first
  return {
    input: { claim: first ?? none },
    revise: async (outcome) => {
      if (!isRefusal(outcome) || outcome.details?.['claim'] !== 'lapsed') return undefined
      if (world.monotonic() >= until) return refuse('service_unavailable', { retry_after: 1 })
      const next = await claimName(edge, call, table_id, origin)
      if (isRefusal(next)) return next
      last = next
      return { claim: next }
    },
    after: async (outcome) => {
      // If the outcome is unknown, the table may still use the claim, so the claim is not released.
      if (!last || !isRefusal(outcome) || isServiceFault(outcome)) return
      await sendNew(
        world,
        { project: scopeId(edge, call), kind: 'table', id: table_id },
        'table.claim_lapsed',
        { ...last, name: String(call.body['name']) },
        origin,
      )
    },
  }
}

async function claimed(
  edge: Edge,
  call: Call,
  table_id: string,
  origin: Origin,
): Promise<Prepared | Refusal> {
  const first = await claimName(edge, call, table_id, origin)
  return isRefusal(first) ? first : withClaim(edge, call, table_id, origin, first)
}

async function create(
  edge: Edge,
  call: Call,
  { seed }: Identity,
  origin: Origin,
): Promise<Prepared | Refusal> {
  const id = newId(edge, call, 'table', seed)
  if (seed !== undefined) return { ...withClaim(edge, call, id, origin), id }
  const prepared = await claimed(edge, call, id, origin)
  return isRefusal(prepared) ? prepared : { ...prepared, id, born: true }
}

const rename: Prepare = (edge, call, _, origin) =>
  call.body['name'] === undefined ? {} : claimed(edge, call, call.slots['id'] ?? '', origin)

/** Preparations of the rows that name a table, by row name. */
export const tableNamePreparations: Readonly<Record<string, Prepare>> = {
  'table.create': create,
  'table.update': rename,
}
