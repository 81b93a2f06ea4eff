/** UI strings of saved views. */
import { messages } from '../text/messages.ts'

export const viewsText = messages('views', {
  views: 'Views',
  save: 'Save this view',
  manage: 'Manage views',
  viewName: 'Name',
  shared: 'Shared with everybody in the project',
  sharedHint: 'Sharing needs the permission project.edit.',
  saved: 'The view was saved.',
  deleted: 'The view was deleted.',
  rename: 'Rename',
  renameView: (name: string) => `Rename ${name}`,
  replace: 'Save the current filters in it',
  share: 'Share',
  unshare: 'Stop sharing',
  delete: 'Delete',
  deleteView: (name: string) => `Delete the view ${name}?`,
  deleteShared: 'Everybody in the project loses it.',
  noViews: 'You have no saved view yet. Set filters, and save them under a name.',
  sharedBadge: 'shared',
})
