/** Texts of the page for signing in. */
import { messages } from '../../text/messages.ts'

export const signInText = messages('sign-in', {
  title: 'Sign in',
  key: 'API key or personal token',
  keyHint: 'It is exchanged for a session of this browser and is not stored here.',
  submit: 'Sign in',
  with: (provider: string) => `Sign in with ${provider}`,
  or: 'or',
  usedLink: 'This sign-in link was used before or has expired. Ask for a new one.',
})
