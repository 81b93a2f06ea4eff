/** The state of console sessions, accounts and sign-in links, and how events change it. */
import type {
  AccountUsers,
  ConsoleEvent,
  ConsoleSessionState,
} from '../../../protocol/access/console-rows.ts'
import { getOwn } from '../../../protocol/lookup.ts'

interface Account {
  readonly issuer: string
  readonly subject: string
  readonly users: AccountUsers
}
interface Link {
  readonly key_id: string
  readonly expires_at: number
}
export interface ConsoleHolder {
  /** Sessions by id. */
  console_sessions: Record<string, ConsoleSessionState>
  /** Accounts by an id that is derived from issuer and subject. */
  accounts: Record<string, Account>
  /** Unused links by the hash of their code. */
  sign_in_links: Record<string, Link>
  /** True once any console session has been opened. */
  console_used?: true
}
export const noConsole = (): ConsoleHolder => ({
  console_sessions: {},
  accounts: {},
  sign_in_links: {},
})

type On<T> = Extract<ConsoleEvent, { readonly type: T }>
const changed = <S extends ConsoleHolder>(
  state: S,
  id: string,
  change: Partial<ConsoleSessionState>,
): S => {
  const session = getOwn(state.console_sessions, id)
  if (session) state.console_sessions[id] = { ...session, ...change }
  return state
}
export const evolveConsole = {
  'console_session.opened': <S extends ConsoleHolder>(
    state: S,
    { id, session }: On<'console_session.opened'>,
  ): S => {
    state.console_sessions[id] = session
    state.console_used = true
    return state
  },
  'console_session.extended': <S extends ConsoleHolder>(
    state: S,
    { id, hash, grants }: On<'console_session.extended'>,
  ): S => changed(state, id, { hash, grants }),
  'console_session.used': <S extends ConsoleHolder>(
    state: S,
    { id, at }: On<'console_session.used'>,
  ): S => changed(state, id, { seen_at: at }),
  'console_session.ended': <S extends ConsoleHolder>(
    state: S,
    { id }: On<'console_session.ended'>,
  ): S => {
    delete state.console_sessions[id]
    return state
  },
  'console_account.changed': <S extends ConsoleHolder>(
    state: S,
    { id, issuer, subject, users }: On<'console_account.changed'>,
  ): S => {
    state.accounts[id] = { issuer, subject, users }
    return state
  },
  'sign_in_link.created': <S extends ConsoleHolder>(
    state: S,
    { id, key_id, expires_at }: On<'sign_in_link.created'>,
  ): S => {
    state.sign_in_links[id] = { key_id, expires_at }
    return state
  },
  'sign_in_link.ended': <S extends ConsoleHolder>(
    state: S,
    { id }: On<'sign_in_link.ended'>,
  ): S => {
    delete state.sign_in_links[id]
    return state
  },
}
