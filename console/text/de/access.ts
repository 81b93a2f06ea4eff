/** German texts of people, roles, keys, secrets, the account and signing in. */
import type { accessText } from '../../pages/access/text.ts'
import type { accountText } from '../../pages/account/text.ts'
import type { signInText } from '../../pages/sign-in/text.ts'
import { plural } from '../plural.ts'

export const access: typeof accessText = {
  title: 'Personen und Zugang',
  people: 'Personen',
  services: 'Dienste',
  roles: 'Rollen',
  keys: 'API-Schlüssel',
  add: 'Hinzufügen',
  addPerson: 'Person hinzufügen',
  editPerson: 'Person bearbeiten',
  addService: 'Dienst hinzufügen',
  editService: 'Dienst bearbeiten',
  search: 'Nach Name, Adresse oder Id suchen',
  name: 'Name',
  email: 'E-Mail',
  emailHint:
    'Dorthin gehen Benachrichtigungen. Wer sich mit dieser bestätigten Adresse anmeldet, wird ' +
    'diese Person.',
  description: 'Beschreibung',
  state: 'Zustand',
  active: 'Aktiv',
  disabled: 'Gesperrt',
  kind: 'Art',
  signIn: 'Meldet sich an mit',
  provider: 'Anbieter',
  token: 'persönlichem Token',
  created: 'Angelegt',
  actions: 'Aktionen',
  actionsOf: (name) => `Aktionen für ${name}`,
  edit: 'Bearbeiten',
  save: 'Speichern',
  saved: 'Gespeichert.',
  added: 'Hinzugefügt.',
  disable: 'Sperren',
  enable: 'Entsperren',
  disableTitle: (name) => `${name} sperren?`,
  disableHint:
    'Alle Schlüssel und Tokens verlieren sofort ihre Wirkung. Der Verlauf bleibt erhalten, und ' +
    'die Sperre kann aufgehoben werden.',
  remove: 'Entfernen',
  removeTitle: (name) => `${name} entfernen?`,
  removePerson:
    'Die Tokens werden widerrufen, und die Mitgliedschaften in Kanälen enden. Das kann nicht ' +
    'rückgängig gemacht werden.',
  removeService:
    'Der Dienst verliert seine Rollen und seine Mitgliedschaften in Kanälen. Widerrufen Sie ' +
    'vorher seine Schlüssel. Das kann nicht rückgängig gemacht werden.',
  removed: 'Entfernt.',
  noPeople: 'Hier gibt es noch keine Personen',
  noPeopleHint:
    'Fügen Sie eine Person hinzu und erstellen Sie ein Token, oder lassen Sie Personen sich mit ' +
    'Ihrem Identitätsanbieter anmelden.',
  noServices: 'Hier gibt es noch keine Dienste',
  noServicesHint:
    'Ein Dienst ist die Identität, mit der ein Programm handelt. Seine Schlüssel haben seine ' +
    'Rollen.',
  noMatch: 'Nichts passt zur Suche.',
  none: 'keine',
  owner: 'Eigentümer',
  noRolesHint: 'Ohne Rolle ist nichts erlaubt.',

  tokens: 'Persönliche Tokens',
  tokensOf: (name) => `Persönliche Tokens von ${name}`,
  noTokens: 'Es gibt kein Token.',
  newToken: 'Neues Token',
  revoke: 'Widerrufen',
  revokeTitle: (name) => `${name} widerrufen?`,
  revokeHint: 'Anfragen damit werden sofort abgelehnt. Das kann nicht rückgängig gemacht werden.',
  revoked: 'Widerrufen.',
  createTokenHint: 'Das Token handelt als diese Person und hat dieselben Rollen.',

  newKey: 'Neuer API-Schlüssel',
  create: 'Erstellen',
  keyName: 'Name',
  keyNameHint: 'Sagt, wo der Schlüssel benutzt wird, zum Beispiel „CI des Shops“.',
  principal: 'Handelt als',
  newPrincipal: 'ein neuer Dienst',
  newPrincipalHint: 'Ein Dienst mit dem Namen des Schlüssels und der Rolle unten wird angelegt.',
  ownPrincipal: 'Der Schlüssel hat höchstens die Rollen des Dienstes.',
  scope: 'Rolle',
  scopeLimit: 'Begrenzt auf die Rolle',
  noLimit: 'alle Rollen des Dienstes',
  expires: 'Läuft ab',
  never: 'nie',
  days: (count) => `in ${plural(count, 'Tag', 'Tagen')}`,
  ended: 'abgelaufen',
  prefix: 'Beginnt mit',
  lastUsed: 'Zuletzt benutzt',
  unused: 'nie',
  noKeys: 'Es gibt keinen API-Schlüssel.',
  noKeysHint:
    'Ein Programm braucht einen Schlüssel, um die API aufzurufen oder Worker zu verbinden.',
  shownOnce:
    'Kopieren Sie ihn jetzt. Er wird nur hier gezeigt und kann nicht noch einmal gelesen werden.',
  keyCreated: 'Der Schlüssel wurde erstellt',
  tokenCreated: 'Das Token wurde erstellt',
  tryIt: 'Ausprobieren',
  done: 'Fertig',

  newRole: 'Neue Rolle',
  editRole: 'Rolle bearbeiten',
  role: 'Rolle',
  system: 'eingebaut',
  permission: 'Recht',
  permissions: 'Rechte',
  actionPermissions: 'Aktionen',
  actionPermissionsHint:
    'Eine je Zeile, wie actions.execute.mail.send, oder actions.execute.crm.* für eine Familie.',
  matrix: 'Was jede Rolle erlaubt',
  allowed: 'erlaubt',
  notAllowed: 'nicht erlaubt',
  deleteRole: 'Rolle löschen',
  deleteRoleTitle: (name) => `Die Rolle ${name} löschen?`,
  deleteRoleHint: (count) =>
    `${plural(count, 'Identität verliert', 'Identitäten verlieren')} diese Rolle. Das kann nicht ` +
    'rückgängig gemacht werden.',
  risk: (level) => `Risiko ${level}`,
  assignments: 'Rollenzuweisungen',
  assigned: 'Seit',
  grantedBy: 'Erteilt von',
  noAssignments: 'Keine Rolle ist zugewiesen.',
  giveRole: 'Rolle zuweisen',
  take: 'Rolle entziehen',
  takeTitle: (role, name) => `Die Rolle ${role} von ${name} entziehen?`,
  taken: 'Die Rolle wurde entzogen.',
  given: 'Die Rolle wurde zugewiesen.',
  give: 'Zuweisen',
  unknown: 'unbekannt',

  secrets: 'Geheimnisse',
  secretsHint:
    'Werte können geschrieben, aber nie gelesen werden. Rückrufe und Integrationen nennen ein ' +
    'Geheimnis bei seinem Namen.',
  newSecret: 'Neues Geheimnis',
  newVersion: 'Neue Version',
  secret: 'Geheimnis',
  secretName: 'Name',
  entries: 'Einträge',
  entry: 'Eintrag',
  repeatedEntry: 'Ein anderer Eintrag hat denselben Namen.',
  value: 'Wert',
  valueHint:
    'Eine neue Version ersetzt alle Einträge. Gespeicherte Werte können nicht gezeigt werden.',
  addEntry: 'Eintrag hinzufügen',
  removeEntry: (name) => `Den Eintrag ${name} entfernen`,
  version: 'Version',
  updated: 'Geändert',
  noSecrets: 'Es gibt noch kein Geheimnis',
  noSecretsHint: 'Speichern Sie hier Schlüssel, statt sie in Definitionen zu schreiben.',
  deleteSecret: 'Löschen',
  deleteSecretTitle: (name) => `Das Geheimnis ${name} löschen?`,
  deleteSecretHint:
    'Alle Versionen werden gelöscht. Alles, was auf das Geheimnis verweist, schlägt dann fehl.',
  generate: 'Signierschlüssel erzeugen',
  stored: 'Das Geheimnis wurde gespeichert.',
}

export const account: typeof accountText = {
  title: 'Konto',
  overview: 'Sie',
  sessions: 'Sitzungen',
  tokens: 'Tokens',
  preferences: 'Vorlieben',
  shortcuts: 'Tastenkürzel',
  name: 'Angemeldet als',
  method: 'Angemeldet mit',
  credential: 'einem Schlüssel oder Token',
  link: 'einem Anmeldelink',
  oidc: 'dem Identitätsanbieter',
  since: 'Seit',
  ends: 'Endet',
  endsHint: 'Früher, wenn sie nicht benutzt wird.',
  organization: 'Organisation',
  organizationRole: (role) => `Schlüssel mit der Rolle ${role}`,
  project: 'Projekt',
  actsAs: 'Sie handeln als',
  permissions: 'Rechte',
  projects: 'Projekte und Rechte',
  moreProjects: 'Es gibt mehr Projekte, als hier aufgeführt sind.',
  noProjects: 'Sie haben auf kein Projekt Zugriff.',
  addCredential: 'Schlüssel oder Token hinzufügen',
  addCredentialHint: 'Fügt dieser Sitzung die Rechte eines weiteren Schlüssels oder Tokens hinzu.',
  signOut: 'Abmelden',

  current: 'dieser Browser',
  client: 'Browser',
  address: 'Adresse',
  lastUsed: 'Zuletzt benutzt',
  unknown: 'unbekannt',
  actions: 'Aktionen',
  revoke: 'Widerrufen',
  revokeTitle: 'Diese Sitzung widerrufen?',
  revokeOwn: 'Das ist die Sitzung dieses Browsers. Sie werden abgemeldet.',
  revokeOther: 'Der andere Browser wird sofort abgemeldet.',
  revokeAll: 'Überall abmelden',
  revokeAllTitle: 'Alle Sitzungen beenden?',
  revokeAllHint: 'Alle Browser werden abgemeldet, auch dieser.',
  revoked: 'Die Sitzung wurde widerrufen.',
  sessionsHint:
    'Browser, in denen Sie angemeldet sind. Widerrufen Sie die Sitzungen, die Sie nicht kennen.',
  noSessions: 'Es gibt keine Sitzung.',

  chooseProject: 'Projekt',
  tokensHint:
    'Mit einem persönlichen Token handeln Programme als Sie, zum Beispiel die Befehlszeile. ' +
    'Tokens gehören zu einem Projekt.',
  tokensOnly: 'Nur Personen haben persönliche Tokens. In diesem Projekt handeln Sie als Dienst.',
  noTokens: 'Sie haben hier kein Token.',

  theme: 'Design',
  themeHint: 'Wird in diesem Browser gespeichert.',
  themeSystem: 'Wie das System',
  themeLight: 'Hell',
  themeDark: 'Dunkel',
  language: 'Sprache',
  languageHint: 'Wird in diesem Browser gespeichert. Die Seite wird neu geladen.',
  languageBrowser: 'Wie der Browser',
  zone: 'Zeitzone',
  zoneHint: 'Zeiten werden in der Zone des Browsers gezeigt.',

  keys: 'Tasten',
  command: 'Befehl',
  palette: 'Suchen oder Befehl ausführen',
  toHeading: 'Überall',
  pages: 'Seiten',
  shortcutsHint:
    'Folgen von Tasten werden nacheinander gedrückt, außerhalb von Textfeldern. ' +
    'Die Palette zeigt die Befehle der aktuellen Seite.',
  close: 'Dialog schließen',
  move: 'Zum nächsten oder vorigen Eintrag einer Liste',
  openItem: 'Gewählten Eintrag öffnen',
}

export const signIn: typeof signInText = {
  title: 'Anmelden',
  key: 'API-Schlüssel oder persönliches Token',
  keyHint: 'Er wird gegen eine Sitzung dieses Browsers getauscht und hier nicht gespeichert.',
  submit: 'Anmelden',
  with: (provider) => `Mit ${provider} anmelden`,
  or: 'oder mit einem Schlüssel',
  link: 'Anmeldung mit dem Link …',
  notEncrypted:
    'An dieser Adresse können Sie sich nicht anmelden, weil die Verbindung nicht verschlüsselt ' +
    'ist. Benutzen Sie https, oder die Adresse 127.0.0.1 auf dem Rechner des Dienstes.',
  failed: 'Die Anmeldung ist fehlgeschlagen. Versuchen Sie es noch einmal.',
  denied: 'Der Anbieter hat die Anmeldung abgelehnt.',
  invalid: 'Die Antwort des Anbieters ist ungültig. Beginnen Sie noch einmal.',
  unavailable: 'Der Anbieter antwortet nicht. Versuchen Sie es später noch einmal.',
  expired:
    'Die Anmeldung hat zu lange gedauert oder wurde in einem anderen Browser begonnen. Beginnen ' +
    'Sie noch einmal.',
  no_access: 'Ihr Konto hat auf kein Projekt Zugriff. Fragen Sie einen Administrator.',
  wrong_domain: 'Konten Ihrer E-Mail-Domain dürfen sich hier nicht anmelden.',
  busy: 'Zu viele Personen melden sich gerade an. Versuchen Sie es in einer Minute noch einmal.',
  not_configured: 'Die Anmeldung mit einem Anbieter ist nicht eingerichtet.',
  not_here: 'An dieser Adresse ist die Anmeldung mit dem Anbieter nicht möglich.',
}
