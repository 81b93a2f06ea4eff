/** The cause of one decision. One is made for every command and tell, so it costs next to nothing until it is asked for something. */
import type { Cause } from '../../actors/actor.ts'
import type { Address, Credential, Origin, Principal } from '../../protocol/entry.ts'
import { makeId, slotOf, type Prefix } from '../../protocol/ids.ts'
import type { Random } from './ports.ts'

/** Letters and digits that are hard to confuse: 5 bits each. */
const SECRET = 'abcdefghijkmnpqrstuvwxyz23456789'
/** Characters of a secret. */
const LENGTH = 20

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

  /** @param self the deciding actor. @param id of the command. @param shard number of the shard that decides. */
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
    const bytes = this.#random.bytes(LENGTH)
    let text = ''
    for (let i = 0; i < LENGTH; i++) text += SECRET[(bytes[i] ?? 0) & 31]
    return text
  }
}
