/**
 * The `Cause` of one decision. Every command and tell needs a new `Cause`, so its creation must be
 * cheap. Ids and secrets are therefore generated on demand.
 */
import type { Cause } from '../../actors/actor.ts'
import type { Address, Credential, Origin, Principal } from '../../protocol/entry.ts'
import { makeId, type Prefix, slotOf } from '../../protocol/ids.ts'
import type { Random } from './ports.ts'

/** Letters and digits that are hard to confuse. Each encodes 5 bits. */
const SECRET = 'abcdefghijkmnpqrstuvwxyz23456789'
/** Length of a secret in characters. */
const SECRET_LENGTH = 20

export class DecisionContext implements Cause {
  readonly id: string
  readonly self: Address
  readonly shard: number
  readonly at: number
  readonly principal: Principal
  declare readonly credential?: Credential
  declare readonly request_id?: string
  declare readonly ip?: string
  declare readonly user_agent?: string
  readonly #random: Random

  /**
   * @param self the deciding actor.
   * @param id id of the command.
   * @param shard number of the deciding shard.
   */
  constructor(self: Address, id: string, origin: Origin, shard: number, random: Random) {
    this.id = id
    this.self = self
    this.shard = shard
    this.at = origin.at
    this.principal = origin.principal
    if (origin.credential !== undefined) this.credential = origin.credential
    if (origin.request_id !== undefined) this.request_id = origin.request_id
    if (origin.ip !== undefined) this.ip = origin.ip
    if (origin.user_agent !== undefined) this.user_agent = origin.user_agent
    this.#random = random
  }
  mint(prefix: Prefix): string {
    return makeId(
      prefix,
      this.at,
      this.#random.bytes(10),
      this.self.kind === 'queue' ? undefined : slotOf(this.self.id),
    )
  }
  secret(): string {
    const bytes = this.#random.bytes(SECRET_LENGTH)
    let text = ''
    for (let i = 0; i < SECRET_LENGTH; i++) text += SECRET[(bytes[i] ?? 0) & 31]
    return text
  }
}
