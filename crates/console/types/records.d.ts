// The records of the API by the names that the console's scripts have for them. Their members are those of the API's document.
type ApiRecords = import("./api").components["schemas"];
type Endpoint = ApiRecords["Endpoint"];
type Health = ApiRecords["Health"];
type WebhookCall = ApiRecords["Webhook"];
type Template = ApiRecords["Template"];
type Volume = ApiRecords["NetworkVolume"];
type Machine = ApiRecords["Machine"];
type ApiKey = ApiRecords["ApiKey"];
type WorkerRecord = ApiRecords["Pod"];
type Job = ApiRecords["JobLife"];
