/** Messages for conflicting edits, and for requests without a response or an error message. */
import { messages } from '../text/messages.ts'

export const apiText = messages('api', {
  unreachable: 'The service does not answer.',
  unknown:
    'The service did not answer, so it is not known whether this was saved. The current state is ' +
    'loaded: check it, and try again if necessary.',
  changedMeanwhile: (fields: string) =>
    `Somebody else has changed this while you were editing: ${fields}. Save again to replace the ` +
    'change, or close the form to keep it.',
  answered: (status: number) => `The service answered ${status}.`,
})
