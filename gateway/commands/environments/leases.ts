/**
 * Seals the tokens of environment leases. Actors identify a lease by its id. Clients receive a
 * token that only this installation can derive from the id, so the id in a record grants no right.
 */
import { withAdditions } from '../../../protocol/additions.ts'
import type { Command } from '../../../protocol/entry.ts'
import type { LeaseGranted } from '../../../protocol/environments/commands.ts'
import {
  type Acquired,
  type Environment,
  environmentAdditions,
} from '../../../protocol/environments/schema.ts'
import { isRefusal, type Refusal, refuse, refuseFields } from '../../../protocol/errors.ts'
import { type Call, type Edge, scopeId } from '../../call.ts'
import { openToken, type Sealer, sealToken } from '../../http/sealed-token.ts'
import type { Prepare } from '../../prepare.ts'

const purpose = (project: string): string => `environment lease\n${project}`

/** Returns the record as responses contain it, without the members that require `include`. */
export const withoutAdditions = (environment: Environment): Environment =>
  withAdditions(environmentAdditions.additions, undefined, environment) as Environment
const granted = (
  world: Sealer,
  project: string,
  { environment, lease }: LeaseGranted,
): Acquired => ({
  environment: withoutAdditions(environment),
  lease: {
    ...lease,
    token: sealToken(world, purpose(project), [environment.id, lease.id]),
  },
})

/**
 * Returns the input of a command, with the id of the lease instead of its token. Returns
 * `bad_request` if the token is not a lease token of this environment, and `not_found` if the
 * environment does not exist.
 */
async function leaseInput({ world }: Edge, project: string, id: string, token: unknown) {
  if (typeof token !== 'string') return {}
  const [environment, lease_id] = openToken(world, purpose(project), token) ?? []
  if (environment === id && typeof lease_id === 'string')
    return { lease_token: undefined, lease_id }
  const found = await world.ask({ project, kind: 'environment', id }, 'get', {})
  if (isRefusal(found)) return found
  return found
    ? refuseFields({
        field: 'lease_token',
        message: 'is not the token of a lease of this environment',
      })
    : refuse('not_found')
}

/**
 * Prepares an acquisition: converts a lease token in the request to the id of the lease, and adds
 * the token of the granted lease to the response.
 */
export const acquire: Prepare = async (edge, call) => {
  const project = scopeId(edge, call)
  const id = call.slots['environment_id'] ?? ''
  const input = await leaseInput(edge, project, id, call.body['lease_token'])
  return isRefusal(input)
    ? input
    : { input, answer: (reply) => granted(edge.world, project, reply as LeaseGranted) }
}
/** Prepares a release: converts the lease token in the request to the id of the lease. */
export const release: Prepare = async (edge, call) => {
  const id = call.slots['environment_id'] ?? ''
  const input = await leaseInput(edge, scopeId(edge, call), id, call.body['lease_token'])
  return isRefusal(input) ? input : { input }
}

/**
 * Acquires the lease of an environment that a call has found or created.
 * @param sent identifies the command, so that a repeat returns the same lease.
 */
export async function acquireFound(
  edge: Edge,
  call: Call,
  id: string,
  sent: Pick<Command, 'command_id' | 'fingerprint' | 'origin'>,
): Promise<Acquired | Refusal> {
  const { holder, ttl_seconds, lease_token } = call.body
  const project = scopeId(edge, call)
  const lease = await leaseInput(edge, project, id, lease_token)
  if (isRefusal(lease)) return lease
  const outcome = await edge.world.commandRow({
    ...sent,
    project,
    kind: 'environment',
    id,
    name: 'environment.acquire',
    input: { holder, ttl_seconds, ...lease },
  })
  if (isRefusal(outcome)) return outcome
  return granted(edge.world, project, outcome.reply as LeaseGranted)
}
