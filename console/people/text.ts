/** Texts about people, agents and roles. */
import { messages } from '../text/messages.ts'

export const peopleText = messages('people', {
  role: (name: string) => `Everybody with the role ${name}`,
})
