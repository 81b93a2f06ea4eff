/**
 * The NATS users of a chaos run in operator mode: one for each node role, one for the node that
 * creates the streams, and one for the run itself.
 */
import { permissionsOf } from '../../nodes/nats/server/permissions.ts'
import { createOperatorAccount } from '../nodes/support/operator.ts'
import type { Role } from './stack.ts'

/** The name of the user that waits for replicas, and the prefix of its inbox. */
export const OBSERVER = 'chaos'

export interface Accounts {
  /** The configuration that replaces the users of each server. */
  readonly authorization: string
  /** The credentials file that the run itself uses to list streams and to read their state. */
  readonly observer: string
  /**
   * Returns the path of the credentials file of a node.
   * @param provisions whether the node creates the streams.
   */
  credsOf(role: Role, provisions: boolean): string
}

/** Creates the users, with their credentials files in `folder`. */
export async function createAccounts(folder: string): Promise<Accounts> {
  const { authorization, user } = await createOperatorAccount(folder)
  const scope = { partitions: 1 }
  const creds = new Map<Role, string>()
  for (const role of ['gateway', 'shards', 'views', 'executor'] as const)
    creds.set(role, await user(role, permissionsOf([role], scope)))
  const provisioner = await user('provisioner', permissionsOf(['shards', 'provision'], scope))
  const observer = await user(OBSERVER, {
    publish: ['$JS.API.INFO', '$JS.API.STREAM.NAMES', '$JS.API.STREAM.INFO.*'],
    subscribe: [`_INBOX.${OBSERVER}.>`],
  })
  return {
    authorization,
    observer,
    credsOf: (role, provisions) => {
      const found = provisions ? provisioner : creds.get(role)
      if (found === undefined) throw new Error(`a ${role} has no NATS account`)
      return found
    },
  }
}
