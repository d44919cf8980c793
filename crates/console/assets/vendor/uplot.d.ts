// The little of uPlot that the console uses.
declare const uPlot: any;
export default uPlot;
