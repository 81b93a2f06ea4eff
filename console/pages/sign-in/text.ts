/** UI strings of the sign-in page. */
import { messages } from '../../text/messages.ts'

export const signInText = messages('sign-in', {
  title: 'Sign in',
  key: 'API key or personal token',
  keyHint: 'It is exchanged for a session of this browser and is not stored here.',
  submit: 'Sign in',
  with: (provider: string) => `Sign in with ${provider}`,
  or: 'or with a key',
  link: 'Signing in with the link…',
  notEncrypted:
    'This address cannot be used for signing in, because the connection is not encrypted. ' +
    'Use https, or the address 127.0.0.1 on the machine of the service.',
  failed: 'Signing in has failed. Try again.',
  denied: 'The provider refused to sign you in.',
  invalid: 'The response of the provider is not valid. Start again.',
  unavailable: 'The provider does not answer. Try again later.',
  expired: 'Signing in took too long, or was started in another browser. Start again.',
  no_access: 'Your account has no access to a project. Ask an administrator.',
  wrong_domain: 'Accounts of your e-mail domain may not sign in here.',
  busy: 'Too many people sign in at the moment. Try again in a minute.',
  not_configured: 'Signing in with a provider is not configured.',
  not_here: 'Signing in with the provider is not possible at this address.',
})
