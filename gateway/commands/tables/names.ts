/**
 * Claims of names before a table is created or renamed. The holder of a name is an actor of its own,
 * so the name is claimed first; the table confirms the claim in the commit that uses it. A claim
 * that is not used is released here after a refusal, and otherwise lapses by itself.
 */
import type { Origin } from '../../../protocol/entry.ts'
import { errors, isRefusal, type Refusal } from '../../../protocol/errors.ts'
import type { NameClaim } from '../../../protocol/tables/events.ts'
import { type Call, type Edge, scopeId } from '../../call.ts'
import { hexOf } from '../../http/hex.ts'
import type { Identity } from '../../http/idempotency.ts'
import type { Outcome } from '../../ports.ts'
import type { Prepare, Prepared } from '../../prepare.ts'

const holderOf = ({ world }: Edge, project: string, name: string): string =>
  world.id('table_name', `${project}/${name}`)

/** Claims the name in the body of a call. Refused with `already_exists` if another table has it. */
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
  const outcome = await world.command({
    project,
    kind: 'table_name',
    id: holder,
    command_id: hexOf(world.random(16)),
    name: 'table_name.claim',
    input: { name, table_id },
    origin,
  })
  return isRefusal(outcome) ? outcome : { holder, claim: outcome.reply.claim }
}

/**
 * Releases a claim after the command was refused. With an unknown outcome, the table may use the
 * claim, so it is left to lapse.
 */
const releaseUnused =
  (edge: Edge, call: Call, table_id: string, { holder, claim }: NameClaim, origin: Origin) =>
  async (outcome: Outcome): Promise<void> => {
    if (!isRefusal(outcome) || errors[outcome.refused].status >= 500) return
    const { world } = edge
    await world.command({
      project: scopeId(edge, call),
      kind: 'table_name',
      id: holder,
      command_id: hexOf(world.random(16)),
      name: 'table_name.release',
      input: { table_id, claim },
      origin,
    })
  }

async function create(
  edge: Edge,
  call: Call,
  { seed }: Identity,
  origin: Origin,
): Promise<Prepared | Refusal> {
  const { world } = edge
  const project = scopeId(edge, call)
  const id = world.id('table', seed)
  if (seed !== undefined) {
    const made = await world.ask({ project, kind: 'table', id }, 'definition', {})
    if (isRefusal(made)) return made
    // A repeat gets the first answer, even if the table has another name by now.
    if (made) {
      const holder = holderOf(edge, project, String(call.body['name']))
      return { id, input: { claim: { holder, claim: 0 } } }
    }
  }
  const claim = await claimName(edge, call, id, origin)
  if (isRefusal(claim)) return claim
  return {
    id,
    input: { claim },
    ...(seed === undefined && { born: true }),
    after: releaseUnused(edge, call, id, claim, origin),
  }
}

async function rename(
  edge: Edge,
  call: Call,
  _: Identity,
  origin: Origin,
): Promise<Prepared | Refusal> {
  if (call.body['name'] === undefined) return {}
  const { id = '' } = call.slots
  const claim = await claimName(edge, call, id, origin)
  if (isRefusal(claim)) return claim
  return { input: { claim }, after: releaseUnused(edge, call, id, claim, origin) }
}

/** Preparations by row name. */
export const tableNamePreparations: Readonly<Record<string, Prepare>> = {
  'table.create': create,
  'table.update': rename,
}
