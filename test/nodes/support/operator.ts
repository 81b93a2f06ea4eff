/** NATS servers in operator mode with one account, and users with exactly the given permissions. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import {
  createAccount,
  createOperator,
  createUser,
  encodeAccount,
  encodeOperator,
  encodeUser,
  fmtCreds,
} from '@nats-io/jwt'
import { findServer } from '../../../nodes/nats/server/install.ts'
import { ANSWER_SECONDS, type Permissions } from '../../../nodes/nats/server/permissions.ts'
import { type Server, startServer } from '../../../nodes/nats/server/server.ts'

export interface OperatorAccount {
  /** The configuration that replaces the users of a server (`ServerOptions.authorization`). */
  readonly authorization: string
  /** Creates a user. Returns the path of its credentials file. */
  user(name: string, permissions: Permissions): Promise<string>
}
export interface OperatorMode {
  readonly server: Server
  readonly folder: string
  readonly user: OperatorAccount['user']
  stop(): Promise<void>
}

/**
 * Creates an operator with an account that has unlimited JetStream.
 * @param folder the folder of the credentials files.
 */
export async function createOperatorAccount(folder: string): Promise<OperatorAccount> {
  const [operator, account, system] = [createOperator(), createAccount(), createAccount()]
  const unlimited = { streams: -1, consumer: -1, mem_storage: -1, disk_storage: -1 }
  const open = { conn: -1, subs: -1, data: -1, payload: -1, imports: -1, exports: -1, leaf: -1 }
  const jwts = {
    operator: await encodeOperator('operator', operator, {
      system_account: system.getPublicKey(),
    }),
    account: await encodeAccount(
      'baton',
      account,
      { limits: { ...open, ...unlimited } },
      { signer: operator },
    ),
    system: await encodeAccount('SYS', system, { limits: open }, { signer: operator }),
  }
  return {
    // The permissions of a shard node make its JWT longer than the default line limit of servers.
    authorization: `max_control_line: 32KB
operator: ${jwts.operator}
system_account: ${system.getPublicKey()}
resolver: MEMORY
resolver_preload: { ${account.getPublicKey()}: ${jwts.account}, ${system.getPublicKey()}: ${jwts.system} }`,
    user: async (name, { publish, subscribe }) => {
      const pair = createUser()
      const jwt = await encodeUser(name, pair, account, {
        pub: { allow: [...publish], deny: [] },
        sub: { allow: [...subscribe], deny: [] },
        resp: { max: 1, ttl: ANSWER_SECONDS * 1e9 },
      })
      const file = join(folder, `${name}.creds`)
      await writeFile(file, fmtCreds(jwt, pair), { mode: 0o600 })
      return file
    },
  }
}

export async function startOperatorMode(): Promise<OperatorMode> {
  const folder = await mkdtemp(join(tmpdir(), 'baton-operator-'))
  const { authorization, user } = await createOperatorAccount(folder)
  const { path: binary } = await findServer(process.env)
  const server = await startServer({
    binary,
    data: join(folder, 'nats'),
    port: 0,
    sync: '2m',
    authorization,
  })
  return {
    server,
    folder,
    user,
    stop: async () => {
      await server.stop()
      await rm(folder, { recursive: true, force: true })
    },
  }
}
