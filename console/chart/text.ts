/** UI strings of charts. */
import { messages } from '../text/messages.ts'

export const chartText = messages('chart', {
  asTable: 'Show as a table',
  time: 'Time',
})
