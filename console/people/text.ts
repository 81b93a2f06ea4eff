/** Texts about people, agents and roles. */
import { messages } from '../text/messages.ts'

export const peopleText = messages('people', {
  service: 'Service account',
  role: (name: string) => `Everybody with the role ${name}`,
})
