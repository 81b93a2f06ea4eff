/**
 * The audit rules of console sessions and sign-in links. Their use, their expiry, and changes to
 * accounts are not audited.
 */
import type { ConsoleEvent } from '../../../protocol/access/console-rows.ts'
import { type Rule, rule } from './audit-rule.ts'

type On<T extends ConsoleEvent['type']> = Extract<ConsoleEvent, { readonly type: T }>
export const consoleAudit: { readonly [T in ConsoleEvent['type']]: Rule | null } = {
  'console_session.opened': rule<On<'console_session.opened'>>(
    'create',
    'console_session',
    ({ session }) => ({ changes: { method: { to: session.method } } }),
  ),
  'console_session.extended': rule<On<'console_session.extended'>>(
    'update',
    'console_session',
    ({ grants }) => ({ changes: { grants: { to: grants.length } } }),
  ),
  'console_session.used': null,
  'console_session.ended': rule<On<'console_session.ended'>>(
    'delete',
    'console_session',
    ({ reason }) => (reason === 'expired' ? undefined : { changes: { reason: { to: reason } } }),
  ),
  'console_account.changed': null,
  'sign_in_link.created': rule<On<'sign_in_link.created'>>(
    'create',
    'sign_in_link',
    ({ key_id }) => ({ resource_id: key_id }),
  ),
  'sign_in_link.ended': null,
}
