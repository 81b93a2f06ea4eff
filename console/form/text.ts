/** UI strings of forms from JSON Schemas. */
import { messages } from '../text/messages.ts'

export const formText = messages('form', {
  form: 'Form',
  json: 'JSON',
  editAs: 'Edit as',
  notSet: 'Not set',
  yes: 'Yes',
  no: 'No',
  item: (index: number) => `Item ${index}`,
  addItem: 'Add an item',
  removeItem: (index: number) => `Remove item ${index}`,
  notJson: 'This is not valid JSON.',
  notShown: 'The form cannot show all of this value. Continue in JSON.',
  changedMeanwhile: (field: string) => `${field} was changed while you were editing.`,
  storedValue: (value: string) => `Now stored: ${value}`,
  noValue: 'no value',
  keepMine: 'Keep my changes',
  takeTheirs: 'Take the stored values',
  save: 'Save',
  needed: (label: string) => `${label} *`,
})
